-- One row: the sweep being published, with the number of changes that it brought.
SELECT
    sweep.*,
    audit.*,
    quarantine.*,
    changes.*
FROM night.sweep AS sweep
CROSS JOIN night.audit AS audit
CROSS JOIN (
    SELECT count(*) AS quarantined
    FROM sweep_files.reject
    WHERE rule IS NOT NULL AND part = 'offer'
) AS quarantine
CROSS JOIN night.change_count AS changes
