-- One row per source, property, market and pair of currencies whose prices are consistently above or below the rate.
-- The prices are of one market answered in both currencies, or of a market and the reference market in another one, if
-- they differ at all rates of eight days but not of 31: the supplier has then not followed the rate for a week.
-- Prices on both sides are not a mark-up: a supplier that adds 8% to prices in whole units produces such a scatter.
-- size_pct: Mark-up of the offer with the largest price, in percent of its price at the reference rate; < 0: cheaper.
-- amount: Sum over stays of the middle mark-up of the pairs that deviate (the lower of two), in currency; > 0: dearer.
-- pairs: Number of offers answered in both currencies, or compared with one in another market at the reference rate.
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
        ) > greatest(tolerance, pair.rounding) AS is_off,
        -- If rounding exceeds the tolerance, an offer close to the rate proves nothing.
        is_off OR pair.rounding <= tolerance AS is_telling
    FROM mart.fx_markup AS pair
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN ref.currency AS unit ON unit.currency = pair.currency
),

priced AS MATERIALIZED (
    FROM mart.late_rate
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
        NULL AS against,
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
        own.is_telling,
        NULL AS others
    FROM own

    UNION ALL

    SELECT
        priced.source,
        priced.property_id,
        priced.market,
        priced.product_type,
        priced.check_in,
        priced.nights,
        priced.party,
        priced.room_id,
        priced.board_id,
        priced.policy_key,
        priced.currency,
        priced.reference_currency AS base_currency,
        priced.reference_market AS against,
        priced.total,
        priced.reference_total AS base_total,
        priced.reference_converted AS base_converted,
        priced.gap AS markup,
        priced.gap_pct AS markup_pct,
        priced.lasting_pct,
        priced.reference_rate,
        priced.rate_date,
        priced.offer_key,
        priced.reference_offer_key AS base_offer_key,
        priced.seen_sweep_id,
        priced.seen_search_id,
        priced.seen_offer_no,
        priced.reference_search_id AS base_search_id,
        priced.reference_offer_no AS base_offer_no,
        priced.is_off,
        TRUE AS is_telling,
        NULL AS others
    FROM priced
    WHERE NOT priced.is_turned

    UNION ALL

    SELECT
        priced.source,
        priced.property_id,
        priced.reference_market AS market,
        priced.product_type,
        priced.check_in,
        priced.nights,
        priced.party,
        priced.reference_room_id AS room_id,
        priced.reference_board_id AS board_id,
        priced.reference_policy_key AS policy_key,
        priced.reference_currency AS currency,
        priced.currency AS base_currency,
        priced.market AS against,
        priced.reference_total AS total,
        priced.total AS base_total,
        mart.converted(priced.total, priced.from_rate, priced.to_rate, unit.minor_unit) AS base_converted,
        (priced.reference_total - base_converted)::DECIMAL(18, 4) AS markup,
        100 * markup::DOUBLE / base_converted::DOUBLE AS markup_pct,
        -- Seen from the other side, 100 that are 25% dearer are 20% cheaper.
        -100 * priced.lasting_pct / (100 + priced.lasting_pct) AS lasting_pct,
        1 / priced.reference_rate AS reference_rate,
        priced.rate_date,
        priced.reference_offer_key AS offer_key,
        priced.offer_key AS base_offer_key,
        priced.reference_sweep_id AS seen_sweep_id,
        priced.reference_search_id AS seen_search_id,
        priced.reference_offer_no AS seen_offer_no,
        priced.seen_search_id AS base_search_id,
        priced.seen_offer_no AS base_offer_no,
        priced.is_off,
        TRUE AS is_telling,
        priced.others
    FROM priced
    LEFT JOIN ref.currency AS unit ON unit.currency = priced.reference_currency
    WHERE priced.is_turned
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
    GROUP BY judged.source, judged.property_id, judged.market, judged.base_currency, judged.currency, side
),

-- A room costs a stay once, in however many boards and policies.
by_stay AS (
    SELECT
        judged.source,
        judged.property_id,
        judged.market,
        judged.base_currency,
        judged.currency,
        sign(judged.lasting_pct) AS side,
        quantile_disc(abs(judged.markup), 0.5) AS amount
    FROM judged
    WHERE judged.is_off
    GROUP BY
        judged.source,
        judged.property_id,
        judged.market,
        judged.base_currency,
        judged.currency,
        side,
        judged.check_in,
        judged.nights,
        judged.party
),

summed AS (
    SELECT
        by_stay.source,
        by_stay.property_id,
        by_stay.market,
        by_stay.base_currency,
        by_stay.currency,
        by_stay.side,
        try_cast(sum(by_stay.amount) AS DECIMAL(18, 4)) AS amount
    FROM by_stay
    GROUP BY
        by_stay.source, by_stay.property_id, by_stay.market, by_stay.base_currency, by_stay.currency, by_stay.side
),

found AS (
    SELECT
        by_side.*,
        (by_side.side * summed.amount)::DECIMAL(18, 4) AS amount,
        mart.observation(
            CASE
                WHEN by_side.largest.against IS NULL THEN 'currency'
                WHEN by_side.largest.others IS NULL THEN 'market'
                ELSE 'reference'
            END,
            by_side.source,
            by_side.property_id,
            by_side.largest.offer_key,
            by_side.largest.seen_sweep_id,
            by_side.largest.seen_search_id,
            by_side.largest.seen_offer_no
        ) AS observation,
        mart.observation(
            CASE
                WHEN by_side.largest.against IS NULL THEN 'base_currency'
                WHEN by_side.largest.others IS NULL THEN 'reference'
                ELSE 'market'
            END,
            by_side.source,
            by_side.property_id,
            by_side.largest.base_offer_key,
            by_side.largest.seen_sweep_id,
            by_side.largest.base_search_id,
            by_side.largest.base_offer_no
        ) AS base_observation,
        sum(by_side.pairs_off) OVER cells AS pairs
    FROM by_side
    LEFT JOIN summed
        ON
            summed.source = by_side.source
            AND summed.property_id = by_side.property_id
            AND summed.market = by_side.market
            AND summed.base_currency = by_side.base_currency
            AND summed.currency = by_side.currency
            AND summed.side = by_side.side
    WINDOW
        cells AS (
            PARTITION BY by_side.source, by_side.property_id, by_side.market, by_side.base_currency, by_side.currency
        )
    QUALIFY by_side.side <> 0 AND 2 * by_side.pairs_off > sum(by_side.pairs_telling) OVER cells
)

SELECT
    'fx_markup' AS rule,
    11 AS rule_version,
    mart.subject_key(
        rule, concat_ws('|', found.source, found.property_id, found.market, found.base_currency, found.currency)
    ) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    -- If tonight's rate has jumped, the supplier may follow in a day or two.
    mart.severity(found.largest.lasting_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    found.largest.markup_pct AS size_pct,
    found.amount,
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
        CASE WHEN found.largest.against IS NULL THEN 'for' ELSE 'against' END,
        found.largest.base_total::DOUBLE,
        found.base_currency,
        coalesce(' in ' || found.largest.against, ''),
        abs(found.largest.markup_pct),
        CASE WHEN found.largest.markup > 0 THEN 'above' ELSE 'below' END,
        CASE
            WHEN found.largest.against IS NOT NULL THEN '; a rate of the last 31 days would explain it'
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
    CASE
        WHEN found.largest.others IS NULL THEN [found.observation, found.base_observation]
        -- Whose currency is late, all other markets show.
        ELSE
            [found.base_observation, found.observation]
            || list_filter(
                found.largest.others, LAMBDA other: other['offer_key'] <> found.largest.base_offer_key
            )
    END AS evidence,
    mart.conversion(
        found.base_currency, found.currency, found.largest.reference_rate, found.largest.rate_date
    ) AS fx
FROM found
CROSS JOIN ref.analysis AS analysis
