-- One row per change of a cancellation policy: in one sweep, one policy of a room, board and stay replaced another.
-- drifted_at: Start of the sweep that saw it.
-- policy_key_before: Hash of the old policy's penalties.
-- policy_key_after: Hash of the new policy's penalties.
-- terms_before: Penalties of the old policy, in words; NULL: none stated.
-- terms_after: Penalties of the new policy, in words; NULL: none stated.
-- free_hours_before: Hours before check-in at which the old policy's earliest penalty starts; NULL: none stated.
-- free_hours_after: Hours before check-in at which the new policy's earliest penalty starts; NULL: none stated.
-- refundability_before: Refundability under the old policy.
-- refundability_after: Refundability under the new policy.
-- total_before: Total under the old policy, in currency.
-- total_after: Total under the new policy, in currency.
-- drift: `stricter`: no longer refundable, or free for less time; `looser`: the reverse; `other`.
-- offer_key_before: Offer key under the old policy.
-- offer_key_after: Offer key under the new policy.
-- before_sweep_id: Sweep that last observed the old policy.
-- before_search_id: Search that last observed the old policy.
-- before_offer_no: Number of the offer in the answer to before_search_id.
-- after_sweep_id: Sweep that first observed the new policy.
-- after_search_id: Search that first observed the new policy.
-- after_offer_no: Number of the offer in the answer to after_search_id.
-- Which policies are paired: see staging/policy_drift_next.
SELECT
    change.source,
    change.property_id,
    change.market,
    change.product_type,
    change.check_in,
    change.nights,
    change.party,
    change.currency,
    change.room_stay_id,
    change.room_id,
    change.board_id,
    change.drifted_at,
    change.policy_key_before,
    change.policy_key_after,
    before.terms AS terms_before,
    after.terms AS terms_after,
    change.free_hours_before,
    change.free_hours_after,
    change.refundability_before,
    change.refundability_after,
    change.total_before,
    change.total_after,
    CASE
        WHEN change.refundability_before = 'refundable' AND change.refundability_after = 'non_refundable'
            THEN 'stricter'
        WHEN change.refundability_before = 'non_refundable' AND change.refundability_after = 'refundable'
            THEN 'looser'
        WHEN change.refundability_before = change.refundability_after
            THEN
                CASE
                    WHEN change.free_hours_after > change.free_hours_before THEN 'stricter'
                    WHEN change.free_hours_after < change.free_hours_before THEN 'looser'
                    ELSE 'other'
                END
        ELSE 'other'
    END AS drift,
    change.offer_key_before,
    change.offer_key_after,
    change.before_sweep_id,
    change.before_search_id,
    change.before_offer_no,
    change.after_sweep_id,
    change.after_search_id,
    change.after_offer_no
FROM state.policy_drift AS change
LEFT JOIN mart.policy AS before ON before.policy_key = change.policy_key_before
LEFT JOIN mart.policy AS after ON after.policy_key = change.policy_key_after
