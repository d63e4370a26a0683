-- One row: the sweep that is being published, with what it changed.
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
CROSS JOIN (
    SELECT
        count(*) FILTER (WHERE change = 'first') AS offers_first,
        count(*) FILTER (WHERE change = 'value') AS offers_changed,
        count(*) FILTER (WHERE change = 'gone') AS offers_gone,
        count(*) FILTER (WHERE change = 'back') AS offers_back,
        count(*) FILTER (WHERE change = 'value' AND total IS DISTINCT FROM previous_total) AS price_changes
    FROM night.offer_change_priced
) AS changes
