-- One row per cancellation penalty of `offer_told`: a row of the lake's table `penalty`.
SELECT
    offer.sweep_id,
    offer.search_id,
    offer.offer_no,
    policy_penalty.penalty_no,
    offer.property_id,
    offer.market,
    policy_penalty.window_hours,
    policy_penalty.penalty_pct,
    policy_penalty.penalty_nights,
    policy_penalty.is_refundable,
    free_cancel_until(offer.source, offer.check_in, policy_penalty.window_hours) AS start_at,
    CASE WHEN start_at IS NOT NULL THEN '+00:00' END AS start_offset
FROM offer_told AS offer
INNER JOIN policy_penalty ON policy_penalty.policy_key = offer.policy_key
