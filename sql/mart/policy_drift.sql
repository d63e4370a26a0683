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
-- If several policies are replaced at once, those of the same refundability are paired, by total; then the one that
-- remains on each side, if there is just one. Others count as a change of what is offered.
-- Offers without room, board or currency are left out: they may be of two rooms.
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
                closed.valid_to,
                closed.refundability
            ORDER BY closed.total, closed.policy_key
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
                begun.valid_from,
                begun.refundability
            ORDER BY begun.total, begun.policy_key
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
),

-- Each policy that went, beside each that came in its place.
replaced AS (
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
        went.free_cancel_hours AS free_hours_before,
        came.free_cancel_hours AS free_hours_after,
        went.refundability AS refundability_before,
        came.refundability AS refundability_after,
        went.total AS total_before,
        came.total AS total_after,
        went.offer_key AS offer_key_before,
        came.offer_key AS offer_key_after,
        went.seen_sweep_id AS before_sweep_id,
        went.seen_search_id AS before_search_id,
        went.seen_offer_no AS before_offer_no,
        came.began_sweep_id AS after_sweep_id,
        came.began_search_id AS after_search_id,
        came.began_offer_no AS after_offer_no,
        came.cell_key,
        went.refundability = came.refundability AND went.place = came.place AS is_pair
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
),

remaining AS (
    SELECT
        replaced.*,
        NOT bool_or(replaced.is_pair)
            OVER (
                PARTITION BY replaced.source, replaced.property_id, replaced.offer_key_before, replaced.drifted_at
            )
        AND NOT bool_or(replaced.is_pair) OVER (
            PARTITION BY replaced.source, replaced.property_id, replaced.offer_key_after, replaced.drifted_at
        ) AS is_left
    FROM replaced
),

paired AS (
    SELECT remaining.*
    FROM remaining
    QUALIFY
        remaining.is_pair
        OR (
            remaining.is_left
            AND count(*) FILTER (WHERE remaining.is_left) OVER (
                PARTITION BY
                    remaining.source,
                    remaining.property_id,
                    remaining.cell_key,
                    remaining.room_stay_id,
                    remaining.room_id,
                    remaining.board_id,
                    remaining.currency,
                    remaining.drifted_at
            ) = 1
        )
)

SELECT
    paired.source,
    paired.property_id,
    paired.market,
    paired.product_type,
    paired.check_in,
    paired.nights,
    paired.party,
    paired.currency,
    paired.room_stay_id,
    paired.room_id,
    paired.board_id,
    paired.drifted_at,
    paired.policy_key_before,
    paired.policy_key_after,
    before.terms AS terms_before,
    after.terms AS terms_after,
    paired.free_hours_before,
    paired.free_hours_after,
    paired.refundability_before,
    paired.refundability_after,
    paired.total_before,
    paired.total_after,
    CASE
        WHEN paired.refundability_before = 'refundable' AND paired.refundability_after = 'non_refundable'
            THEN 'stricter'
        WHEN paired.refundability_before = 'non_refundable' AND paired.refundability_after = 'refundable'
            THEN 'looser'
        WHEN paired.refundability_before = paired.refundability_after
            THEN
                CASE
                    WHEN paired.free_hours_after > paired.free_hours_before THEN 'stricter'
                    WHEN paired.free_hours_after < paired.free_hours_before THEN 'looser'
                    ELSE 'other'
                END
        ELSE 'other'
    END AS drift,
    paired.offer_key_before,
    paired.offer_key_after,
    paired.before_sweep_id,
    paired.before_search_id,
    paired.before_offer_no,
    paired.after_sweep_id,
    paired.after_search_id,
    paired.after_offer_no
FROM paired
LEFT JOIN mart.policy AS before ON before.policy_key = paired.policy_key_before
LEFT JOIN mart.policy AS after ON after.policy_key = paired.policy_key_after -- noqa: RF04
