-- One row per finding and period in which it was open; resolved_at NULL: still open.
-- hours_to_resolve: Hours from first_flagged_at to resolved_at; NULL: still open, or nothing was resolved.
-- size_unit: Unit of size_pct: `%`, `% of the total` or `percentage points`.
SELECT
    flag.*,
    -- What is no longer on sale, or can no longer be judged, was not put right.
    CASE
        WHEN flag.ended_by = 'value' THEN date_diff('second', flag.first_flagged_at, flag.resolved_at) / 3600.0
    END AS hours_to_resolve,
    mart.size_unit(flag.rule) AS size_unit
FROM (
    SELECT * FROM state.flag_closed
    UNION ALL BY NAME
    SELECT * FROM state.flag_open
) AS flag
