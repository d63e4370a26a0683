-- One row per exact pair at the reference rate of a market and currency in which the supplier's rate may be late.
-- others: Observations of all markets that deviate from the same offer of the reference market; NULL: it does not.
-- is_turned: Whether the late rate is that of the reference market's own currency.
-- is_off: Whether the pair deviates as a late rate would make it.
-- to_rate: Units of currency per euro; to_rate / from_rate is the rate, exactly.
-- from_rate: Units of reference_currency per euro.
-- lasting_pct: Distance from the closest reference rate of eight days, in percent; < 0: cheaper.
-- A rate is late if pairs differ at all rates of eight days, but not of 31: it has not been followed for a week.
-- If the reference market's offer deviates from another market by more than these rates explain, in the same direction,
-- its own price may be the cause, and the pair is no sign of a late rate.
-- If most markets deviate from an offer of the reference market in one direction, and so do most currencies, its own
-- included, the late rate is the one of its own currency: the mark-up is the reference market's, and is found once, not
-- in each of the others. If as many currencies do as do not, the euro is not late: all rates are quoted against it.
-- Only offers of the reference market with a pair at a reference rate are of interest; a lake of one currency has none.
WITH exchanged AS (
    SELECT DISTINCT
        pair.source,
        pair.property_id,
        pair.reference_offer_key
    FROM mart.market_parity AS pair
    WHERE pair.match_grade = 'exact' AND pair.currency_basis = 'reference_rate'
),

-- Exact pairs with these, and whether rates of the last 31 days, but not of eight, explain the gap.
placed AS MATERIALIZED (
    SELECT
        pair.source,
        pair.property_id,
        pair.market,
        pair.currency,
        pair.currency_basis,
        pair.reference_currency,
        pair.reference_offer_key,
        pair.offer_key,
        pair.seen_sweep_id,
        pair.seen_search_id,
        pair.seen_offer_no,
        analysis.tolerance_pct + analysis.reference_rate_pct AS allowed_pct,
        CASE
            WHEN NOT mart.is_level(pair.verdict, pair.gap_pct, analysis.disparity_pct) THEN sign(pair.gap)
            ELSE 0
        END AS side,
        pair.currency_basis <> 'same'
        AND mart.fits_rates(
            pair.total,
            pair.reference_total,
            moved.lowest_month_rate,
            moved.highest_month_rate,
            allowed_pct
        ) AS is_of_month,
        is_of_month
        AND NOT mart.fits_rates(
            pair.total,
            pair.reference_total,
            moved.lowest_rate,
            moved.highest_rate,
            allowed_pct
        ) AS is_of_month_only
    FROM mart.market_parity AS pair
    SEMI JOIN exchanged
        ON
            exchanged.source = pair.source
            AND exchanged.property_id = pair.property_id
            AND exchanged.reference_offer_key = pair.reference_offer_key
    LEFT JOIN mart.cross_rate AS moved
        ON
            moved.sweep_id = pair.seen_sweep_id
            AND moved.to_currency = pair.currency
            AND moved.from_currency = pair.reference_currency
    CROSS JOIN ref.analysis AS analysis
    WHERE
        pair.match_grade = 'exact'
        AND pair.currency_basis <> 'supplier_rate'
),

-- Offers of the reference market that another market deviates from, where no rate is the cause.
beside AS (
    SELECT DISTINCT
        placed.source,
        placed.property_id,
        placed.reference_offer_key,
        placed.side
    FROM placed
    WHERE placed.side <> 0 AND NOT placed.is_of_month
),

compared AS MATERIALIZED (
    SELECT
        placed.*,
        placed.side <> 0 AND placed.is_of_month_only AND beside.side IS NULL AS is_off
    FROM placed
    LEFT JOIN beside
        ON
            beside.source = placed.source
            AND beside.property_id = placed.property_id
            AND beside.reference_offer_key = placed.reference_offer_key
            AND beside.side = placed.side
),

-- Offers of the reference market from which most of the markets deviate in one direction, at least one at a late rate.
-- Their witnesses are listed afterwards: lists of all offers would take most of the time.
aside AS (
    SELECT
        compared.source,
        compared.property_id,
        compared.reference_offer_key,
        count(DISTINCT compared.market) FILTER (WHERE compared.side > 0) AS above,
        count(DISTINCT compared.market) FILTER (WHERE compared.side < 0) AS below,
        CASE WHEN above > below THEN 1 ELSE -1 END AS side,
        -- Markets that share a currency share its rate.
        count(DISTINCT compared.currency) FILTER (
            WHERE compared.currency <> compared.reference_currency
        ) AS currencies,
        count(DISTINCT compared.currency) FILTER (
            WHERE compared.currency <> compared.reference_currency AND compared.side > 0
        ) AS currencies_above,
        count(DISTINCT compared.currency) FILTER (
            WHERE compared.currency <> compared.reference_currency AND compared.side < 0
        ) AS currencies_below,
        CASE WHEN above > below THEN currencies_above ELSE currencies_below END AS currencies_aside
    FROM compared
    GROUP BY compared.source, compared.property_id, compared.reference_offer_key
    HAVING
        greatest(above, below) >= 2
        AND 2 * greatest(above, below) > count(DISTINCT compared.market)
        -- The reference market's own currency agrees with itself.
        AND 2 * currencies_aside
        + CASE WHEN any_value(compared.reference_currency) = 'EUR' THEN 0 ELSE 1 END
        > currencies + 1
        AND CASE
            WHEN above > below THEN bool_or(compared.is_off AND compared.side > 0)
            ELSE bool_or(compared.is_off AND compared.side < 0)
        END
),

turned AS (
    SELECT
        aside.source,
        aside.property_id,
        aside.reference_offer_key,
        aside.side,
        list(
            mart.observation(
                'witness',
                compared.source,
                compared.property_id,
                compared.offer_key,
                compared.seen_sweep_id,
                compared.seen_search_id,
                compared.seen_offer_no
            )
            ORDER BY compared.market, compared.currency
        ) AS others
    FROM aside
    INNER JOIN compared
        ON
            compared.source = aside.source
            AND compared.property_id = aside.property_id
            AND compared.reference_offer_key = aside.reference_offer_key
    GROUP BY aside.source, aside.property_id, aside.reference_offer_key, aside.side
),

shown AS (
    SELECT
        compared.*,
        turned.others
    FROM compared
    LEFT JOIN turned
        ON
            turned.source = compared.source
            AND turned.property_id = compared.property_id
            AND turned.reference_offer_key = compared.reference_offer_key
            AND turned.side = compared.side
    WHERE compared.currency_basis = 'reference_rate'
),

-- The currency with which the reference market's is compared there: the same one in all properties, for one case.
turned_in AS (
    SELECT
        shown.source,
        shown.property_id,
        shown.reference_currency,
        arg_min(shown.currency, (shown.currency <> 'EUR', shown.currency)) AS currency
    FROM shown
    GROUP BY shown.source, shown.property_id, shown.reference_currency
    HAVING bool_or(shown.others IS NOT NULL)
),

-- A rate applies to all markets in its currency: if one of them follows it, the others deviate for other reasons.
late AS (
    SELECT
        shown.source,
        shown.property_id,
        shown.market,
        shown.reference_currency,
        shown.currency,
        2 * count(*) FILTER (WHERE shown.is_off AND shown.others IS NULL) > count(*) AS is_late
    FROM shown
    GROUP BY shown.source, shown.property_id, shown.market, shown.reference_currency, shown.currency
    QUALIFY
        bool_and(is_late) OVER (
            PARTITION BY shown.source, shown.property_id, shown.reference_currency, shown.currency
        )
),

-- What is found in a market, and what is found in the reference market, seen from the first of the others.
concerned AS (
    SELECT
        shown.*,
        FALSE AS is_turned
    FROM shown
    SEMI JOIN late
        ON
            late.source = shown.source
            AND late.property_id = shown.property_id
            AND late.market = shown.market
            AND late.reference_currency = shown.reference_currency
            AND late.currency = shown.currency

    UNION ALL

    SELECT
        shown.*,
        TRUE AS is_turned
    FROM shown
    SEMI JOIN turned_in
        ON
            turned_in.source = shown.source
            AND turned_in.property_id = shown.property_id
            AND turned_in.reference_currency = shown.reference_currency
            AND turned_in.currency = shown.currency
    QUALIFY
        row_number() OVER (
            PARTITION BY shown.source, shown.property_id, shown.reference_offer_key
            ORDER BY shown.is_off DESC, shown.market ASC, shown.offer_key ASC
        ) = 1
)

SELECT
    pair.*,
    concerned.is_turned,
    concerned.others,
    concerned.is_off AND concerned.is_turned = (concerned.others IS NOT NULL) AS is_off,
    moved.to_rate,
    moved.from_rate,
    100 * (
        greatest(pair.total::DOUBLE / (pair.reference_total::DOUBLE * moved.highest_rate) - 1, 0)
        + least(pair.total::DOUBLE / (pair.reference_total::DOUBLE * moved.lowest_rate) - 1, 0)
    ) AS lasting_pct
FROM mart.market_parity AS pair
INNER JOIN concerned
    ON
        concerned.source = pair.source
        AND concerned.property_id = pair.property_id
        AND concerned.offer_key = pair.offer_key
        AND concerned.reference_offer_key = pair.reference_offer_key
INNER JOIN mart.cross_rate AS moved
    ON
        moved.sweep_id = pair.seen_sweep_id
        AND moved.to_currency = pair.currency
        AND moved.from_currency = pair.reference_currency
WHERE
    pair.match_grade = 'exact'
    AND pair.currency_basis = 'reference_rate'
