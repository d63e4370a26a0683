-- One row per source, offer key and interval of its history in which it had a total: that total and the one before.
-- snapshots: Number of sweeps that saw the offer in this interval.
-- total_before: Total of the previous interval with one, in currency; NULL: there is none.
-- was_gone: Whether the offer was gone between the previous interval with a total and this one.
-- is_only: Whether the offer has no other interval. Most offers of a night are such ones.
SELECT -- noqa: AM07
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
    history.total,
    history.snapshots,
    history.valid_from,
    history.last_seen_at,
    NULL::DECIMAL(18, 4) AS total_before,
    FALSE AS was_gone,
    TRUE AS is_only
FROM mart.offer_history AS history
WHERE
    history.total > 0
    -- In a partly unreadable detail answer, a dearer product may represent the key.
    AND (history.is_whole OR history.source = 'multi')
    AND history.valid_from = history.first_seen_at
    AND coalesce(history.ended_by, 'stay_began') = 'stay_began'

UNION ALL BY NAME

SELECT
    followed.* EXCLUDE (is_offered), -- noqa: RF02
    FALSE AS is_only
FROM (
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
        lag(CASE WHEN history.total > 0 THEN history.total END IGNORE NULLS) OVER in_time AS total_before,
        coalesce(
            max(history.valid_from) FILTER (WHERE NOT history.is_offered) OVER in_time
            > lag(CASE WHEN history.total > 0 THEN history.valid_from END IGNORE NULLS) OVER in_time,
            FALSE
        ) AS was_gone
    FROM mart.offer_history AS history
    WHERE
        (history.is_whole OR history.source = 'multi')
        AND NOT (
            history.valid_from = history.first_seen_at
            AND coalesce(history.ended_by, 'stay_began') = 'stay_began'
        )
    WINDOW in_time AS (PARTITION BY history.source, history.property_id, history.offer_key ORDER BY history.valid_from)
) AS followed
WHERE followed.total > 0
