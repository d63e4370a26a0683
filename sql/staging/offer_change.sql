-- One row per offer key whose state this sweep changes: first seen, value changed, gone, or back.
SELECT
    sweep.sweep_id,
    sweep.started_at AS changed_at,
    CASE WHEN before.offer_key IS NULL THEN 'first' WHEN before.is_offered THEN 'value' ELSE 'back' END AS change,
    before.last_seen_at AS previous_seen_at,
    observed.offer_key,
    observed.property_id,
    observed.market,
    observed.product_type,
    observed.check_in,
    observed.nights,
    observed.party,
    observed.currency_asked,
    observed.currency,
    observed.room_stay_id,
    observed.room_id,
    observed.board_id,
    observed.policy_key,
    observed.promotion_key,
    observed.total,
    observed.pre_promo_total,
    observed.discount_pct,
    observed.floor,
    observed.available_rooms,
    observed.source
FROM night.offer_observed AS observed
CROSS JOIN night.sweep AS sweep
LEFT JOIN state.offer_open AS before
    ON
        before.source = observed.source
        AND before.property_id = observed.property_id
        AND before.offer_key = observed.offer_key
WHERE
    before.offer_key IS NULL
    OR NOT before.is_offered
    OR before.total IS DISTINCT FROM observed.total
    OR before.pre_promo_total IS DISTINCT FROM observed.pre_promo_total
    OR before.discount_pct IS DISTINCT FROM observed.discount_pct
    OR before.floor IS DISTINCT FROM observed.floor
    OR before.available_rooms IS DISTINCT FROM observed.available_rooms
    OR before.promotion_key IS DISTINCT FROM observed.promotion_key

UNION ALL

SELECT
    sweep.sweep_id,
    sweep.started_at AS changed_at,
    'gone' AS change,
    before.last_seen_at AS previous_seen_at,
    before.offer_key,
    before.property_id,
    before.market,
    before.product_type,
    before.check_in,
    before.nights,
    before.party,
    before.currency_asked,
    before.currency,
    before.room_stay_id,
    before.room_id,
    before.board_id,
    before.policy_key,
    NULL AS promotion_key,
    NULL AS total,
    NULL AS pre_promo_total,
    NULL AS discount_pct,
    NULL AS floor,
    NULL AS available_rooms,
    before.source
FROM state.offer_open AS before
CROSS JOIN night.sweep AS sweep
INNER JOIN night.cell_observed AS cell
    ON
        cell.source = before.source
        AND cell.property_id = before.property_id
        AND cell.cell_key = before.cell_key
        AND cell.is_answered_whole
ANTI JOIN night.offer_observed AS observed
    ON
        observed.source = before.source
        AND observed.property_id = before.property_id
        AND observed.offer_key = before.offer_key
WHERE before.is_offered
