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
-- If several policies are replaced at once, they are paired by refundability, then by total; the remaining ones count
-- as a change of what is offered. Offers without room, board or currency are left out: they may be of two rooms.
WITH went AS (
    SELECT
        closed.*,
        row_number() OVER (
            PARTITION BY
                closed.source,
                closed.property_id,
                closed.cell_key,
                closed.room_stay_id,
                closed.room_id,
                closed.board_id,
                closed.currency,
                closed.valid_to
            ORDER BY closed.refundability, closed.total, closed.policy_key
        ) AS place
    FROM state.offer_closed AS closed
    WHERE
        closed.is_offered
        AND closed.ended_by = 'gone'
        AND closed.room_id IS NOT NULL
        AND closed.board_id IS NOT NULL
        AND closed.currency IS NOT NULL
),

came AS (
    SELECT
        begun.*,
        row_number() OVER (
            PARTITION BY
                begun.source,
                begun.property_id,
                begun.cell_key,
                begun.room_stay_id,
                begun.room_id,
                begun.board_id,
                begun.currency,
                begun.valid_from
            ORDER BY begun.refundability, begun.total, begun.policy_key
        ) AS place
    FROM (
        SELECT * EXCLUDE (valid_to, ended_by) FROM state.offer_closed
        UNION ALL BY NAME
        SELECT * FROM state.offer_open
    ) AS begun
    -- What the first sweep saw replaces nothing.
    WHERE begun.is_offered AND begun.change IN ('first', 'back') AND begun.valid_from > (
        SELECT min(sweep.started_at) FROM mart.sweep AS sweep
    )
)

SELECT
    came.source,
    came.property_id,
    came.market,
    came.product_type,
    came.check_in,
    came.nights,
    came.party,
    came.currency,
    came.room_stay_id,
    came.room_id,
    came.board_id,
    came.valid_from AS drifted_at,
    went.policy_key AS policy_key_before,
    came.policy_key AS policy_key_after,
    before.terms AS terms_before,
    after.terms AS terms_after,
    went.free_cancel_hours AS free_hours_before,
    came.free_cancel_hours AS free_hours_after,
    went.refundability AS refundability_before,
    came.refundability AS refundability_after,
    went.total AS total_before,
    came.total AS total_after,
    CASE
        WHEN went.refundability = 'refundable' AND came.refundability = 'non_refundable' THEN 'stricter'
        WHEN went.refundability = 'non_refundable' AND came.refundability = 'refundable' THEN 'looser'
        WHEN went.refundability = came.refundability AND came.free_cancel_hours > went.free_cancel_hours THEN 'stricter'
        WHEN went.refundability = came.refundability AND came.free_cancel_hours < went.free_cancel_hours THEN 'looser'
        ELSE 'other'
    END AS drift,
    went.offer_key AS offer_key_before,
    came.offer_key AS offer_key_after,
    went.seen_sweep_id AS before_sweep_id,
    went.seen_search_id AS before_search_id,
    went.seen_offer_no AS before_offer_no,
    came.began_sweep_id AS after_sweep_id,
    came.began_search_id AS after_search_id,
    came.began_offer_no AS after_offer_no
FROM came
INNER JOIN went
    ON
        went.source = came.source
        AND went.property_id = came.property_id
        AND went.cell_key = came.cell_key
        AND went.room_stay_id IS NOT DISTINCT FROM came.room_stay_id
        AND went.room_id = came.room_id
        AND went.board_id = came.board_id
        AND went.currency = came.currency
        AND went.valid_to = came.valid_from
        AND went.place = came.place
LEFT JOIN mart.policy AS before ON before.policy_key = went.policy_key
LEFT JOIN mart.policy AS after ON after.policy_key = came.policy_key -- noqa: RF04
