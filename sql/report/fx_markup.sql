-- One row per source, property, market and pair of currencies whose prices are consistently above or below the rate.
-- The prices are of one market answered in both currencies, or of a market and the reference market in another one, if
-- they differ at all rates of eight days but not of 31: the supplier has then not followed the rate for a week.
-- If the reference market's offer deviates from another market by more than these rates explain, in the same direction,
-- its own price may be the cause, and the pair is no sign of a late rate.
-- Prices on both sides are not a mark-up: a supplier that adds 8% to prices in whole units produces such a scatter.
-- size_pct: Mark-up of the offer with the largest price, in percent of its price at the reference rate; < 0: cheaper.
-- amount: total - base_converted of that offer, in currency; > 0: dearer than at the reference rate.
-- pairs: Number of offers answered in both currencies, or compared with the reference market at the reference rate.
-- pairs_off: Number of pairs that deviate in the direction of the mark-up, beyond tolerance and rounding.
-- lowest_pct: Smallest mark-up of the pairs that deviate, in percent.
-- highest_pct: Largest mark-up of the pairs that deviate, in percent.
-- severity: `low`, `medium` or `high`, by the distance of that offer from the closest reference rate of eight days.
WITH own AS (
    SELECT
        pair.*,
        mart.tolerance(pair.base_converted, analysis.tolerance_pct, unit.minor_unit) AS tolerance,
        -- A price beyond all rates of eight days may still be due to rounding, however far tonight's rate has moved.
        try_cast(
            round(abs(pair.total::DOUBLE * (1 - 1 / (1 + pair.lasting_pct / 100))), 4) AS DECIMAL(18, 4)
        ) > greatest(tolerance, pair.rounding) AS is_off, -- noqa: RF02
        -- If rounding exceeds the tolerance, an offer close to the rate proves nothing.
        is_off OR pair.rounding <= tolerance AS is_telling -- noqa: RF02
    FROM mart.fx_markup AS pair
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN ref.currency AS unit ON unit.currency = pair.currency
),

-- Offers of the reference market that another market deviates from, where no rate is the cause.
beside AS NOT MATERIALIZED (
    SELECT DISTINCT
        pair.source,
        pair.property_id,
        pair.reference_offer_key,
        sign(pair.gap) AS side
    FROM mart.market_parity AS pair
    LEFT JOIN mart.cross_rate AS moved
        ON
            moved.sweep_id = pair.seen_sweep_id
            AND moved.to_currency = pair.currency
            AND moved.from_currency = pair.reference_currency
    CROSS JOIN ref.analysis AS analysis
    WHERE
        pair.match_grade = 'exact'
        AND pair.currency_basis <> 'supplier_rate'
        AND pair.verdict <> 'meet'
        AND abs(pair.gap_pct) > analysis.disparity_pct
        AND (
            pair.currency_basis = 'same'
            OR NOT mart.fits_rates(
                pair.total,
                pair.reference_total,
                moved.lowest_month_rate,
                moved.highest_month_rate,
                analysis.tolerance_pct + analysis.reference_rate_pct
            )
        )
),

-- Not materialized: most pairs need only a few columns.
compared AS NOT MATERIALIZED (
    SELECT
        pair.*,
        100 * (
            greatest(pair.total::DOUBLE / (pair.reference_total::DOUBLE * moved.highest_rate) - 1, 0)
            + least(pair.total::DOUBLE / (pair.reference_total::DOUBLE * moved.lowest_rate) - 1, 0)
        ) AS lasting_pct,
        analysis.tolerance_pct + analysis.reference_rate_pct AS allowed_pct,
        pair.verdict <> 'meet'
        AND abs(pair.gap_pct) > analysis.disparity_pct
        AND abs(lasting_pct) > allowed_pct
        AND beside.side IS NULL
        AND mart.fits_rates(
            pair.total,
            pair.reference_total,
            moved.lowest_month_rate,
            moved.highest_month_rate,
            allowed_pct
        ) AS is_off
    FROM mart.market_parity AS pair
    INNER JOIN mart.cross_rate AS moved
        ON
            moved.sweep_id = pair.seen_sweep_id
            AND moved.to_currency = pair.currency
            AND moved.from_currency = pair.reference_currency
    LEFT JOIN beside
        ON
            beside.source = pair.source
            AND beside.property_id = pair.property_id
            AND beside.reference_offer_key = pair.reference_offer_key
            AND beside.side = sign(pair.gap)
    CROSS JOIN ref.analysis AS analysis
    WHERE
        pair.match_grade = 'exact'
        AND pair.currency_basis = 'reference_rate'
),

-- A rate applies to all markets in its currency: if one of them follows it, the others deviate for other reasons.
late AS (
    SELECT
        compared.source,
        compared.property_id,
        compared.market,
        compared.reference_currency,
        compared.currency,
        2 * count(*) FILTER (WHERE compared.is_off) > count(*) AS is_late
    FROM compared
    GROUP BY
        compared.source, compared.property_id, compared.market, compared.reference_currency, compared.currency
    QUALIFY
        bool_and(is_late) OVER ( -- noqa: RF02
            PARTITION BY compared.source, compared.property_id, compared.reference_currency, compared.currency
        )
),

judged AS (
    SELECT
        own.source,
        own.property_id,
        own.market,
        own.product_type,
        own.check_in,
        own.nights,
        own.party,
        own.room_id,
        own.board_id,
        own.policy_key,
        own.currency,
        own.base_currency,
        NULL AS reference_market,
        own.total,
        own.base_total,
        own.base_converted,
        own.markup,
        own.markup_pct,
        own.lasting_pct,
        own.reference_rate,
        own.rate_date,
        own.offer_key,
        own.base_offer_key,
        own.seen_sweep_id,
        own.seen_search_id,
        own.seen_offer_no,
        own.base_search_id,
        own.base_offer_no,
        own.is_off,
        own.is_telling
    FROM own

    UNION ALL

    SELECT
        compared.source,
        compared.property_id,
        compared.market,
        compared.product_type,
        compared.check_in,
        compared.nights,
        compared.party,
        compared.room_id,
        compared.board_id,
        compared.policy_key,
        compared.currency,
        compared.reference_currency AS base_currency,
        compared.reference_market,
        compared.total,
        compared.reference_total AS base_total,
        compared.reference_converted AS base_converted,
        compared.gap AS markup,
        compared.gap_pct AS markup_pct,
        compared.lasting_pct,
        compared.reference_rate,
        compared.rate_date,
        compared.offer_key,
        compared.reference_offer_key AS base_offer_key,
        compared.seen_sweep_id,
        compared.seen_search_id,
        compared.seen_offer_no,
        compared.reference_search_id AS base_search_id,
        compared.reference_offer_no AS base_offer_no,
        compared.is_off,
        TRUE AS is_telling
    FROM compared
    SEMI JOIN late
        ON
            late.source = compared.source
            AND late.property_id = compared.property_id
            AND late.market = compared.market
            AND late.reference_currency = compared.reference_currency
            AND late.currency = compared.currency
),

-- By side: 1 above the rate, -1 below it, 0 for no deviation.
by_side AS (
    SELECT
        judged.source,
        judged.property_id,
        judged.market,
        judged.base_currency,
        judged.currency,
        CASE WHEN judged.is_off THEN sign(judged.lasting_pct) ELSE 0 END AS side,
        count(*) AS pairs_off,
        count(*) FILTER (WHERE judged.is_telling) AS pairs_telling,
        min(judged.markup_pct) AS lowest_pct,
        max(judged.markup_pct) AS highest_pct,
        -- Rounding affects the largest price least.
        arg_max(judged, (judged.base_total, judged.offer_key)) AS largest
    FROM judged
    GROUP BY judged.source, judged.property_id, judged.market, judged.base_currency, judged.currency, side -- noqa: RF02
),

found AS (
    SELECT
        by_side.*,
        sum(by_side.pairs_off) OVER cells AS pairs
    FROM by_side
    WINDOW
        cells AS (
            PARTITION BY by_side.source, by_side.property_id, by_side.market, by_side.base_currency, by_side.currency
        )
    QUALIFY by_side.side <> 0 AND 2 * by_side.pairs_off > sum(by_side.pairs_telling) OVER cells
)

SELECT
    'fx_markup' AS rule,
    7 AS rule_version,
    mart.subject_key(
        'fx_markup', concat_ws('|', found.source, found.property_id, found.market, found.base_currency, found.currency)
    ) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    -- If tonight's rate has jumped, the supplier may follow in a day or two.
    mart.severity(found.largest.lasting_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    found.largest.markup_pct AS size_pct,
    found.largest.markup AS amount,
    found.source,
    found.property_id,
    found.market,
    found.largest.product_type,
    found.largest.check_in,
    found.largest.nights,
    found.largest.party,
    found.currency,
    found.largest.room_id,
    found.largest.board_id,
    found.largest.policy_key,
    found.base_currency,
    found.largest.total,
    found.largest.base_total,
    found.largest.base_converted,
    found.pairs::BIGINT AS pairs,
    found.pairs_off,
    found.lowest_pct,
    found.highest_pct,
    format(
        '{:,.2f} {} {} {:,.2f} {}{}: {:.1f}% {} the reference rate{}.',
        found.largest.total::DOUBLE,
        found.currency,
        CASE WHEN found.largest.reference_market IS NULL THEN 'for' ELSE 'against' END,
        found.largest.base_total::DOUBLE,
        found.base_currency,
        coalesce(' in ' || found.largest.reference_market, ''),
        abs(found.largest.markup_pct),
        CASE WHEN found.largest.markup > 0 THEN 'above' ELSE 'below' END,
        CASE
            WHEN found.largest.reference_market IS NOT NULL THEN '; a rate of the last 31 days would explain it'
            WHEN round(abs(found.largest.markup_pct) - abs(found.largest.lasting_pct), 1) >= 0.5
                THEN
                    format(
                        ', {:.1f}% {} the closest one of the last eight days',
                        abs(found.largest.lasting_pct),
                        CASE WHEN found.largest.markup > 0 THEN 'above' ELSE 'below' END
                    )
            ELSE ''
        END
    ) AS finding,
    [
        mart.observation(
            CASE WHEN found.largest.reference_market IS NULL THEN 'currency' ELSE 'market' END,
            found.source,
            found.property_id,
            found.largest.offer_key,
            found.largest.seen_sweep_id,
            found.largest.seen_search_id,
            found.largest.seen_offer_no
        ),
        mart.observation(
            CASE WHEN found.largest.reference_market IS NULL THEN 'base_currency' ELSE 'reference' END,
            found.source,
            found.property_id,
            found.largest.base_offer_key,
            found.largest.seen_sweep_id,
            found.largest.base_search_id,
            found.largest.base_offer_no
        )
    ] AS evidence,
    mart.conversion(
        found.base_currency, found.currency, found.largest.reference_rate, found.largest.rate_date
    ) AS fx
FROM found
CROSS JOIN ref.analysis AS analysis
