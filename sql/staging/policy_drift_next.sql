-- One row per change of a cancellation policy: in this sweep, one policy of a room, board and stay replaced another.
-- If several policies are replaced at once, those of the same refundability are paired, by total; then the one that
-- remains on each side, if there is just one. Others count as a change of what is offered.
-- Offers without room, board or currency are left out: they may be of two rooms.
WITH went AS (
    SELECT
        before.*,
        row_number() OVER (
            PARTITION BY
                before.source,
                before.property_id,
                before.cell_key,
                before.room_stay_id,
                before.room_id,
                before.board_id,
                before.currency,
                before.refundability
            ORDER BY before.total, before.policy_key
        ) AS place
    FROM night.offer_ending AS before
    INNER JOIN night.offer_change AS change
        ON
            change.source = before.source
            AND change.property_id = before.property_id
            AND change.offer_key = before.offer_key
            AND change.change = 'gone'
    WHERE
        before.room_id IS NOT NULL
        AND before.board_id IS NOT NULL
        AND before.currency IS NOT NULL
),

came AS (
    SELECT
        observed.*,
        row_number() OVER (
            PARTITION BY
                observed.source,
                observed.property_id,
                observed.cell_key,
                observed.room_stay_id,
                observed.room_id,
                observed.board_id,
                observed.currency,
                observed.refundability
            ORDER BY observed.total, observed.policy_key
        ) AS place
    FROM night.offer_observed AS observed
    WHERE observed.change IN ('first', 'back')
),

-- Each policy that went, beside each that came in its place.
replaced AS (
    SELECT
        came.source,
        came.property_id,
        came.cell_key,
        came.market,
        came.product_type,
        came.check_in,
        came.nights,
        came.party,
        came.currency,
        came.room_stay_id,
        came.room_id,
        came.board_id,
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
        came.search_id,
        came.offer_no,
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
),

remaining AS (
    SELECT
        replaced.*,
        NOT bool_or(replaced.is_pair)
            OVER (PARTITION BY replaced.source, replaced.property_id, replaced.offer_key_before)
        AND NOT bool_or(replaced.is_pair)
            OVER (PARTITION BY replaced.source, replaced.property_id, replaced.offer_key_after)
            AS is_left
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
                    remaining.currency
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
    sweep.started_at AS drifted_at,
    paired.policy_key_before,
    paired.policy_key_after,
    paired.free_hours_before,
    paired.free_hours_after,
    paired.refundability_before,
    paired.refundability_after,
    paired.total_before,
    paired.total_after,
    paired.offer_key_before,
    paired.offer_key_after,
    paired.before_sweep_id,
    paired.before_search_id,
    paired.before_offer_no,
    sweep.sweep_id AS after_sweep_id,
    paired.search_id AS after_search_id,
    paired.offer_no AS after_offer_no
FROM paired
CROSS JOIN night.sweep AS sweep
