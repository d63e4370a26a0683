-- One row per offer key whose state this sweep changes: first seen, value changed, gone, or back.
-- previous_total: Total before this sweep, in currency; NULL: it was not on sale, or new.
SELECT
    sweep.sweep_id,
    sweep.started_at AS changed_at,
    observed.change,
    observed.before.last_seen_at AS previous_seen_at,
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
    observed.before.total AS previous_total,
    observed.pre_promo_total,
    observed.discount_pct,
    observed.floor,
    observed.available_rooms,
    observed.source
FROM night.offer_observed AS observed
CROSS JOIN night.sweep AS sweep
WHERE observed.change IS NOT NULL

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
    before.total AS previous_total,
    NULL AS pre_promo_total,
    NULL AS discount_pct,
    NULL AS floor,
    NULL AS available_rooms,
    before.source
FROM night.offer_ending AS before
CROSS JOIN night.sweep AS sweep
INNER JOIN night.cell_observed AS cell
    ON
        cell.source = before.source
        AND cell.property_id = before.property_id
        AND cell.cell_key = before.cell_key
        AND cell.is_answered_whole
WHERE before.is_offered AND NOT before.is_seen
