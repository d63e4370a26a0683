-- One row per source, offer and currency in which it costs more than the reference rate explains.
-- explains: at least a minor unit of either currency, and a unit of either where both are written in whole units.
-- size_pct: Mark-up on the reference rate, in percent.
-- amount: total - base_converted, in currency.
SELECT
    'fx_markup' AS rule,
    2 AS rule_version,
    mart.subject_key('fx_markup', concat_ws('|', pair.source, pair.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(pair.markup_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    pair.markup_pct AS size_pct,
    pair.markup AS amount,
    pair.source,
    pair.property_id,
    pair.market,
    pair.product_type,
    pair.check_in,
    pair.nights,
    pair.party,
    pair.currency,
    pair.room_id,
    pair.board_id,
    pair.policy_key,
    pair.base_currency,
    pair.total,
    pair.base_total,
    pair.base_converted,
    format(
        '{:.2f} {} for {:.2f} {}: {:.1f}% above the reference rate.',
        pair.total::DOUBLE,
        pair.currency,
        pair.base_total::DOUBLE,
        pair.base_currency,
        pair.markup_pct
    ) AS finding,
    [
        mart.observation(
            'currency',
            pair.source,
            pair.property_id,
            pair.offer_key,
            pair.seen_sweep_id,
            pair.seen_search_id,
            pair.seen_offer_no
        ),
        mart.observation(
            'base_currency',
            pair.source,
            pair.property_id,
            pair.base_offer_key,
            pair.seen_sweep_id,
            pair.base_search_id,
            pair.base_offer_no
        )
    ] AS evidence,
    mart.conversion(pair.base_currency, pair.currency, pair.reference_rate, pair.rate_date) AS fx
FROM mart.fx_markup AS pair
CROSS JOIN ref.analysis AS analysis
LEFT JOIN ref.currency AS unit ON unit.currency = pair.currency
WHERE
    pair.markup > mart.tolerance(pair.base_converted, analysis.tolerance_pct, unit.minor_unit)
    AND pair.markup > pair.rounding
