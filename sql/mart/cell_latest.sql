-- One row per cell whose stay is in the future: its latest request, with status and age.
-- is_fresh: Whether the latest published sweep answered it.
-- age_hours: Hours from its last answer to the start of the latest published sweep; NULL: never answered.
-- offers: Offers stored for this cell.
SELECT
    cell.*,
    cell.sweep_id = latest.sweep_id AND mart.is_answered(cell.status) AS is_fresh,
    -- greatest() ignores NULL: a cell that was never answered would look fresh.
    CASE
        WHEN cell.answered_at IS NOT NULL
            THEN greatest(date_diff('second', cell.answered_at, latest.started_at), 0) / 3600.0
    END AS age_hours
FROM state.cell AS cell
CROSS JOIN (
    SELECT
        sweep_id,
        started_at
    FROM mart.sweep
    ORDER BY started_at DESC
    LIMIT 1
) AS latest
