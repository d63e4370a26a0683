-- One row per finding and period in which it was open; resolved_at NULL: still open.
-- hours_to_resolve: Hours from first_flagged_at to resolved_at; NULL: still open, or nothing was resolved.
SELECT
    flag.*,
    CASE
        -- What can no longer be judged was not resolved.
        WHEN
            flag.ended_by NOT IN (
                'stay_began', 'not_asked', 'not_compared', 'reference_changed', 'outdated', 'rule_changed'
            )
            THEN date_diff('second', flag.first_flagged_at, flag.resolved_at) / 3600.0
    END AS hours_to_resolve
FROM (
    SELECT * FROM state.flag_closed
    UNION ALL BY NAME
    SELECT * FROM state.flag_open
) AS flag
