-- One row per match grade, source and offer of a market that the reference market was seen to offer in the same sweep.
-- reference_market: Market that it is compared with.
-- reference_offer_key: Offer key of the offer that it is compared with.
-- reference_currency: ISO 4217 code of the reference offer: the same as currency wherever it was asked for in it.
-- reference_total: Total of the reference offer, in reference_currency.
-- reference_converted: reference_total in currency, at the reference rate of the day of the sweep, to its minor unit.
-- tolerance: How far total and reference_converted may lie apart and still meet, in currency.
-- gap: total - reference_converted, in currency; above 0: dearer than in the reference market.
-- gap_pct: gap in percent of reference_converted.
-- verdict: `win`: cheaper than in the reference market, `meet`, or `lose`: dearer than there.
-- severity: Size of the gap: `low`, `medium` or `high`; NULL where the prices meet.
-- rate: Units of currency for one reference_currency; NULL: they are the same.
-- rate_date: Business day that the rate was set for, the older one of the two currencies; NULL: no rate was needed.
-- losing_snapshots: Snapshots in a row in which it was dearer, when last compared; kept of exact pairs in one currency.
-- losing_since: Start of the first sweep of these.
-- reference_sweep_id: Sweep of the observation that it is compared with.
-- reference_search_id: Search of that observation.
-- reference_offer_no: Offer of that observation.
-- reference_board_id: Board basis id of the reference offer.
-- reference_policy_key: Hash of the cancel penalties of the reference offer.
-- reference_room_id: Room id of the reference offer.
-- reference_cell_key: Cell of the reference offer.
-- reference_pre_promo_total: Total before promotions of the reference offer, in reference_currency.
-- reference_promotion_key: Hash of the promotions of the reference offer.
-- reference_included_charges: Taxes and fees inside reference_total, in reference_currency. Detail only.
WITH asked AS (
    SELECT DISTINCT
        offer.source,
        offer.property_id,
        offer.market,
        offer.currency,
        offer.currency_asked
    FROM mart.offer_latest AS offer
    WHERE offer.currency IS NOT NULL
),

-- Which currency of the reference market a currency is compared with: the same one wherever there is it.
currency_pair AS (
    SELECT
        here.source,
        here.property_id,
        here.market,
        here.currency,
        here.currency_asked,
        there.market AS reference_market,
        there.currency AS reference_currency,
        there.currency_asked AS reference_currency_asked
    FROM asked AS here
    INNER JOIN asked AS there
        ON
            there.source = here.source
            AND there.property_id = here.property_id
    INNER JOIN mart.reference_market AS chosen ON chosen.reference_market = there.market
    WHERE here.market <> there.market
    QUALIFY
        row_number() OVER (
            PARTITION BY here.source, here.property_id, here.market, here.currency, here.currency_asked
            ORDER BY
                there.currency = here.currency DESC,
                there.currency_asked IS NOT DISTINCT FROM here.currency_asked DESC,
                there.currency ASC,
                there.currency_asked ASC NULLS FIRST
        ) = 1
),

-- The rates of each sweep for the few pairs of different currencies.
exchange AS (
    SELECT
        here.sweep_id,
        here.currency,
        there.currency AS reference_currency,
        here.rate::DOUBLE / there.rate::DOUBLE AS rate,
        least(here.rate_date, there.rate_date) AS rate_date
    FROM mart.fx_of_sweep AS here
    INNER JOIN mart.fx_of_sweep AS there
        ON
            there.sweep_id = here.sweep_id
            AND there.currency <> here.currency
),

-- Chosen before it is paired: all pairs of all markets would be many times as many.
reference AS (
    SELECT comparable.*
    FROM mart.comparable_offer AS comparable
    WHERE comparable.market = (SELECT chosen.reference_market FROM mart.reference_market AS chosen)
),

-- DuckDB 2.0.0 works out once what both sides share, and then never returns from a LIMIT, unless this is materialised.
paired AS MATERIALIZED (
    SELECT
        offer.*,
        reference.market AS reference_market,
        reference.offer_key AS reference_offer_key,
        reference.room_id AS reference_room_id,
        reference.board_id AS reference_board_id,
        reference.policy_key AS reference_policy_key,
        reference.currency AS reference_currency,
        reference.total AS reference_total,
        reference.cell_key AS reference_cell_key,
        reference.pre_promo_total AS reference_pre_promo_total,
        reference.promotion_key AS reference_promotion_key,
        reference.included_charges AS reference_included_charges,
        reference.seen_sweep_id AS reference_sweep_id,
        reference.seen_search_id AS reference_search_id,
        reference.seen_offer_no AS reference_offer_no,
        exchange.rate,
        exchange.rate_date,
        unit.minor_unit,
        CASE
            WHEN offer.currency = reference.currency THEN reference.total
            ELSE
                try_cast(
                    round(reference.total::DOUBLE * exchange.rate, coalesce(unit.minor_digits, 2)) AS DECIMAL(18, 4)
                )
        END AS reference_converted
    FROM mart.comparable_offer AS offer
    INNER JOIN reference
        ON
            reference.match_grade = offer.match_grade
            AND reference.match_key = offer.match_key
            AND reference.property_id = offer.property_id
            AND reference.product_type = offer.product_type
    INNER JOIN currency_pair
        ON
            currency_pair.source = offer.source
            AND currency_pair.property_id = offer.property_id
            AND currency_pair.market = offer.market
            AND currency_pair.currency = offer.currency
            AND currency_pair.currency_asked IS NOT DISTINCT FROM offer.currency_asked
            AND currency_pair.reference_currency = reference.currency
            AND currency_pair.reference_currency_asked IS NOT DISTINCT FROM reference.currency_asked
    LEFT JOIN exchange
        ON
            exchange.sweep_id = offer.seen_sweep_id
            AND exchange.currency = offer.currency
            AND exchange.reference_currency = reference.currency
    LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
),

judged AS (
    SELECT
        paired.* EXCLUDE (minor_unit, match_key), -- noqa: RF02
        mart.tolerance(paired.reference_converted, analysis.tolerance_pct, paired.minor_unit) AS tolerance,
        (paired.total - paired.reference_converted)::DECIMAL(18, 4) AS gap,
        100 * gap::DOUBLE / paired.reference_converted::DOUBLE AS gap_pct, -- noqa: RF02
        CASE
            WHEN gap < -tolerance THEN 'win' -- noqa: RF02
            WHEN gap <= tolerance THEN 'meet' -- noqa: RF02
            ELSE 'lose'
        END AS verdict,
        analysis.medium_pct,
        analysis.high_pct
    FROM paired
    CROSS JOIN ref.analysis AS analysis
    WHERE paired.reference_converted > 0
)

SELECT
    judged.* EXCLUDE (medium_pct, high_pct), -- noqa: RF02
    CASE
        WHEN judged.verdict <> 'meet' THEN mart.severity(judged.gap_pct, judged.medium_pct, judged.high_pct)
    END AS severity,
    episode.snapshots AS losing_snapshots,
    episode.began_at AS losing_since
FROM judged
LEFT JOIN state.parity_open AS episode
    -- A condition on one side alone would make DuckDB 1.5 compare every row with every other one.
    ON
        episode.source = judged.source
        AND episode.property_id = judged.property_id
        AND episode.offer_key = CASE WHEN judged.match_grade = 'exact' THEN judged.offer_key END
        AND episode.reference_offer_key = judged.reference_offer_key
