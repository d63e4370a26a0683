-- One row per source, property, market and pair of currencies with prices that keep off the reference rate.
-- size_pct: Mark-up of the offer with the largest price on the reference rate, in percent; below 0: cheaper than at it.
-- amount: total - base_converted of that offer, in currency.
-- pairs: Offers that were answered in both currencies.
-- pairs_off: Number of these offers that deviate from the rate, beyond tolerance and rounding.
-- lowest_pct: Smallest mark-up of these offers, in percent.
-- highest_pct: Largest mark-up of these offers, in percent.
WITH judged AS (
    SELECT
        pair.*,
        mart.tolerance(pair.base_converted, analysis.tolerance_pct, unit.minor_unit) AS tolerance,
        -- A price beyond all rates of eight days may still be rounding, however far tonight's rate has moved.
        try_cast(
            round(abs(pair.total::DOUBLE * (1 - 1 / (1 + pair.lasting_pct / 100))), 4) AS DECIMAL(18, 4)
        ) > greatest(tolerance, pair.rounding) AS is_off, -- noqa: RF02
        -- Where rounding exceeds the tolerance, an offer close to the rate proves nothing.
        is_off OR pair.rounding <= tolerance AS is_telling -- noqa: RF02
    FROM mart.fx_markup AS pair
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN ref.currency AS unit ON unit.currency = pair.currency
),

found AS (
    SELECT
        judged.source,
        judged.property_id,
        judged.market,
        judged.base_currency,
        judged.currency,
        count(*) AS pairs,
        count(*) FILTER (WHERE judged.is_off) AS pairs_off,
        min(judged.markup_pct) FILTER (WHERE judged.is_off) AS lowest_pct,
        max(judged.markup_pct) FILTER (WHERE judged.is_off) AS highest_pct,
        -- The largest price is the one that rounding touches least.
        arg_max(judged, (judged.base_total, judged.offer_key)) FILTER (WHERE judged.is_off) AS largest
    FROM judged
    GROUP BY judged.source, judged.property_id, judged.market, judged.base_currency, judged.currency
    HAVING 2 * count(*) FILTER (WHERE judged.is_off) > count(*) FILTER (WHERE judged.is_telling)
)

SELECT
    'fx_markup' AS rule,
    4 AS rule_version,
    mart.subject_key(
        'fx_markup', concat_ws('|', found.source, found.property_id, found.market, found.base_currency, found.currency)
    ) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(found.largest.markup_pct, analysis.medium_pct, analysis.high_pct) AS severity,
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
    found.pairs,
    found.pairs_off,
    found.lowest_pct,
    found.highest_pct,
    format(
        '{:.2f} {} for {:.2f} {}: {:.1f}% {} the reference rate.',
        found.largest.total::DOUBLE,
        found.currency,
        found.largest.base_total::DOUBLE,
        found.base_currency,
        abs(found.largest.markup_pct),
        CASE WHEN found.largest.markup > 0 THEN 'above' ELSE 'below' END
    ) AS finding,
    [
        mart.observation(
            'currency',
            found.source,
            found.property_id,
            found.largest.offer_key,
            found.largest.seen_sweep_id,
            found.largest.seen_search_id,
            found.largest.seen_offer_no
        ),
        mart.observation(
            'base_currency',
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
