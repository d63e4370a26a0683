-- One row per source and hotel-only offer that the mark-up of ref.analysis would price below its floor.
-- An offer answered in several currencies counts once: in the first, alphabetically, in which it would be below.
-- size_pct: amount in percent of the floor; always > 0.
-- amount: floor - price, in currency; always > 0.
-- markup_pct: Mark-up on total, in percent.
-- price: total plus the mark-up, in currency.
WITH judged AS (
    SELECT
        headroom.*,
        analysis.what_if_markup_pct AS markup_pct,
        analysis.medium_pct,
        analysis.high_pct,
        mart.tolerance(headroom.floor, analysis.tolerance_pct, unit.minor_unit) AS tolerance,
        round(headroom.total::DOUBLE * (1 + analysis.what_if_markup_pct / 100), 4)::DECIMAL(18, 4) AS price
    FROM mart.floor_headroom AS headroom
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN ref.currency AS unit ON unit.currency = headroom.currency
    WHERE
        analysis.what_if_markup_pct IS NOT NULL
        AND headroom.headroom_pct > analysis.what_if_markup_pct
        AND headroom.currency IS NOT NULL
)

SELECT
    'floor_what_if' AS rule,
    2 AS rule_version,
    mart.subject_key(rule, concat_ws('|', judged.source, judged.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    100 * (judged.floor - judged.price)::DOUBLE / judged.floor::DOUBLE AS size_pct,
    mart.severity(size_pct, judged.medium_pct, judged.high_pct) AS severity,
    (judged.floor - judged.price)::DECIMAL(18, 4) AS amount,
    judged.source,
    judged.property_id,
    judged.market,
    judged.product_type,
    judged.check_in,
    judged.nights,
    judged.party,
    judged.currency,
    judged.room_id,
    judged.board_id,
    judged.policy_key,
    judged.total,
    judged.floor,
    judged.markup_pct,
    judged.price,
    format(
        'With a mark-up of {}%, {:,.2f} {} sells at {:,.2f}, {:.1f}% below the floor of {:,.2f}.',
        judged.markup_pct,
        judged.total::DOUBLE,
        judged.currency,
        judged.price::DOUBLE,
        size_pct,
        judged.floor::DOUBLE
    ) AS finding,
    [
        mart.observation(
            'offer',
            judged.source,
            judged.property_id,
            judged.offer_key,
            judged.seen_sweep_id,
            judged.seen_search_id,
            judged.seen_offer_no
        )
    ] AS evidence,
    mart.conversion(NULL, NULL, NULL, NULL) AS fx
FROM judged
WHERE judged.floor - judged.price > judged.tolerance
QUALIFY
    row_number() OVER (
        PARTITION BY
            judged.source,
            judged.property_id,
            judged.market,
            judged.product_type,
            judged.check_in,
            judged.nights,
            judged.party,
            judged.room_stay_id,
            judged.room_id,
            judged.board_id,
            judged.policy_key
        ORDER BY judged.currency, judged.offer_key
    ) = 1
