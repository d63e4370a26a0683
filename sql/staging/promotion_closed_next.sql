-- One row per promotion of an offer that this sweep saw end, or that was last seen before the offer's stay began.
-- See mart.promotion_episode.
SELECT
    before.source,
    before.offer_key,
    before.property_id,
    before.market,
    before.product_type,
    before.check_in,
    before.nights,
    before.party,
    before.currency,
    before.room_id,
    before.board_id,
    before.policy_key,
    before.promoted_from AS began_at,
    before.plain_seen_at,
    coalesce(before.promoted_seen_at, before.last_seen_at) AS promoted_seen_at,
    CASE WHEN ended.offer_key IS NOT NULL THEN sweep.started_at END AS ended_at,
    before.least_depth_pct,
    before.most_depth_pct,
    CASE WHEN before.promoted_seen_at IS NULL THEN before.promotion_key ELSE before.promoted_key END AS promotion_key
FROM night.offer_ending AS before
CROSS JOIN night.sweep AS sweep
LEFT JOIN night.promotion_observed AS ended
    ON
        ended.source = before.source
        AND ended.property_id = before.property_id
        AND ended.offer_key = before.offer_key
        AND ended.is_ended
WHERE
    before.promoted_from IS NOT NULL
    AND (ended.offer_key IS NOT NULL OR (before.check_in <= sweep.snapshot_date AND NOT before.is_seen))
