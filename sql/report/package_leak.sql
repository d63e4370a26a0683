-- One row per source and hotel-only offer whose package rate, sold without the package, would undercut its floor.
-- size_pct: amount in percent of the floor; always > 0.
-- amount: hotel_floor - package_total, in currency; always > 0.
SELECT
    'package_leak' AS rule,
    1 AS rule_version,
    mart.subject_key(rule, concat_ws('|', pair.source, pair.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(pair.leak_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    pair.leak_pct AS size_pct,
    pair.leak AS amount,
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
    pair.hotel_total,
    pair.package_total,
    pair.hotel_floor,
    format(
        'The package rate of {:,.2f} {} lies {:.1f}% below the hotel-only floor of {:,.2f}.',
        pair.package_total::DOUBLE,
        pair.currency,
        pair.leak_pct,
        pair.hotel_floor::DOUBLE
    ) AS finding,
    [
        mart.observation(
            'hotel',
            pair.source,
            pair.property_id,
            pair.offer_key,
            pair.seen_sweep_id,
            pair.seen_search_id,
            pair.seen_offer_no
        ),
        mart.observation(
            'package',
            pair.source,
            pair.property_id,
            pair.package_offer_key,
            pair.seen_sweep_id,
            pair.package_search_id,
            pair.package_offer_no
        )
    ] AS evidence,
    mart.conversion(NULL, NULL, NULL, NULL) AS fx
FROM mart.package_discount AS pair
CROSS JOIN ref.analysis AS analysis
LEFT JOIN ref.currency AS unit ON unit.currency = pair.currency
WHERE pair.leak > mart.tolerance(pair.hotel_floor, analysis.tolerance_pct, unit.minor_unit)
