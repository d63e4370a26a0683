-- One row per source, offer key and interval of its history in which it had a total: that total and the previous one.
-- snapshots: Number of sweeps that saw the offer in this interval.
-- total_before: Total of the previous interval with one, in currency; NULL: there is none.
-- was_gone: Whether the offer was gone between the previous interval with a total and this one.
-- was_unpriced: Whether it was on sale without a total between the two; what it cost then is unknown.
-- is_only: Whether the offer has no other interval; most offers have only one.
-- NOT MATERIALIZED: each branch reads only its rows, and a query that stops early cannot block the other branch.
WITH told AS NOT MATERIALIZED (
    SELECT
        history.source,
        history.property_id,
        history.offer_key,
        history.cell_key,
        history.market,
        history.product_type,
        history.check_in,
        history.nights,
        history.party,
        history.currency,
        history.room_stay_id,
        history.room_id,
        history.board_id,
        history.policy_key,
        history.is_offered,
        history.total,
        history.snapshots,
        history.valid_from,
        history.last_seen_at,
        history.first_seen_at,
        coalesce(history.ended_by, 'stay_began') AS ended_by
    FROM mart.offer_history AS history
    -- In a partly unreadable detail answer, a dearer product may represent the key.
    WHERE history.is_whole OR history.source = 'multi'
)

-- AM07 counts the columns of a star as one.
SELECT -- noqa: AM07
    told.* EXCLUDE (is_offered, first_seen_at, ended_by),
    NULL::DECIMAL(18, 4) AS total_before,
    FALSE AS was_gone,
    TRUE AS is_only,
    FALSE AS was_unpriced
FROM told
WHERE
    told.total > 0
    AND told.valid_from = told.first_seen_at
    AND told.ended_by = 'stay_began'

UNION ALL BY NAME

-- AM07 counts the columns of a star as one.
SELECT -- noqa: AM07
    followed.* EXCLUDE (is_offered, first_seen_at, ended_by, was_unpriced),
    FALSE AS is_only,
    followed.was_unpriced
FROM (
    SELECT
        told.*,
        lag(CASE WHEN told.total > 0 THEN told.total END IGNORE NULLS) OVER in_time AS total_before,
        coalesce(
            max(told.valid_from) FILTER (WHERE NOT told.is_offered) OVER in_time
            > lag(CASE WHEN told.total > 0 THEN told.valid_from END IGNORE NULLS) OVER in_time,
            FALSE
        ) AS was_gone,
        coalesce(
            max(told.valid_from) FILTER (WHERE told.is_offered AND NOT coalesce(told.total > 0, FALSE)) OVER in_time
            > lag(CASE WHEN told.total > 0 THEN told.valid_from END IGNORE NULLS) OVER in_time,
            FALSE
        ) AS was_unpriced
    FROM told
    WHERE NOT (told.valid_from = told.first_seen_at AND told.ended_by = 'stay_began')
    WINDOW in_time AS (PARTITION BY told.source, told.property_id, told.offer_key ORDER BY told.valid_from)
) AS followed
WHERE followed.total > 0
