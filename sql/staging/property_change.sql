-- One row per property whose content this sweep changes. A value that an answer does not state stays unchanged.
WITH observed AS (
    SELECT
        property_id,
        first(property_name ORDER BY search_id ASC) FILTER (WHERE property_name IS NOT NULL) AS property_name,
        min(search_id) AS search_id
    FROM sweep_files.property_content
    GROUP BY property_id
)

SELECT
    sweep.sweep_id,
    observed.search_id,
    sweep.started_at AS changed_at,
    CASE WHEN before.property_id IS NULL THEN 'first' ELSE 'value' END AS change,
    observed.property_id,
    coalesce(observed.property_name, before.property_name) AS property_name
FROM observed
CROSS JOIN night.sweep AS sweep
LEFT JOIN state.property AS before ON before.property_id = observed.property_id
WHERE
    before.property_id IS NULL
    OR before.property_name IS DISTINCT FROM coalesce(observed.property_name, before.property_name)
