-- One row per promotion of an offer that this sweep saw end, or that was last seen before the offer's stay began.
-- See mart.promotion_episode.
SELECT
    offer.source,
    offer.offer_key,
    offer.property_id,
    offer.market,
    offer.product_type,
    offer.check_in,
    offer.nights,
    offer.party,
    offer.currency,
    offer.room_id,
    offer.board_id,
    offer.policy_key,
    before.promoted_from AS began_at,
    before.plain_seen_at,
    before.promoted_seen_at,
    CASE WHEN ended.offer_key IS NOT NULL THEN sweep.started_at END AS ended_at,
    before.least_depth_pct,
    before.most_depth_pct,
    before.promotion_key
FROM night.promotion_ending AS before
INNER JOIN night.offer_ending AS offer
    ON
        offer.source = before.source
        AND offer.property_id = before.property_id
        AND offer.offer_key = before.offer_key
CROSS JOIN night.sweep AS sweep
LEFT JOIN night.promotion_observed AS ended
    ON
        ended.source = before.source
        AND ended.property_id = before.property_id
        AND ended.offer_key = before.offer_key
        AND ended.is_ended
WHERE
    before.promoted_from IS NOT NULL
    AND (ended.offer_key IS NOT NULL OR (offer.check_in <= sweep.snapshot_date AND NOT offer.is_seen))
