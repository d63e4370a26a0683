-- One row per room whose content this sweep changes. A value that an answer does not state stays unchanged.
WITH observed AS (
    SELECT
        property_id,
        room_id,
        first(room_name ORDER BY search_id ASC, room_no ASC) FILTER (WHERE room_name IS NOT NULL) AS room_name,
        first(room_description ORDER BY search_id ASC, room_no ASC) FILTER (
            WHERE room_description IS NOT NULL
        ) AS room_description,
        first(bed_type ORDER BY search_id ASC, room_no ASC) FILTER (WHERE bed_type IS NOT NULL) AS bed_type,
        min(search_id) AS search_id
    FROM sweep_files.room_content
    GROUP BY property_id, room_id
),

-- Properties with only readable answers, at least one with offers: a room in none of them is no longer sold.
answered AS (
    SELECT
        property_id,
        min(search_id) FILTER (WHERE status = 'offered') AS search_id
    FROM night.cell_observed
    WHERE operation = 'single'
    GROUP BY property_id
    HAVING bool_and(is_answered_whole) AND bool_or(status = 'offered')
)

SELECT
    sweep.sweep_id,
    observed.search_id,
    sweep.started_at AS changed_at,
    CASE
        WHEN before.property_id IS NULL THEN 'first'
        WHEN before.change = 'gone' THEN 'back'
        ELSE 'value'
    END AS change,
    observed.property_id,
    observed.room_id,
    coalesce(observed.room_name, before.room_name) AS room_name,
    coalesce(observed.room_description, before.room_description) AS room_description,
    coalesce(observed.bed_type, before.bed_type) AS bed_type
FROM observed
CROSS JOIN night.sweep AS sweep
LEFT JOIN state.room AS before
    ON
        before.property_id = observed.property_id
        AND before.room_id IS NOT DISTINCT FROM observed.room_id
WHERE
    before.property_id IS NULL
    OR before.change = 'gone'
    OR before.room_name IS DISTINCT FROM coalesce(observed.room_name, before.room_name)
    OR before.room_description IS DISTINCT FROM coalesce(observed.room_description, before.room_description)
    OR before.bed_type IS DISTINCT FROM coalesce(observed.bed_type, before.bed_type)

UNION ALL

SELECT
    sweep.sweep_id,
    answered.search_id,
    sweep.started_at AS changed_at,
    'gone' AS change,
    before.property_id,
    before.room_id,
    before.room_name,
    before.room_description,
    before.bed_type
FROM state.room AS before
CROSS JOIN night.sweep AS sweep
INNER JOIN answered ON answered.property_id = before.property_id
ANTI JOIN observed
    ON
        observed.property_id = before.property_id
        AND observed.room_id IS NOT DISTINCT FROM before.room_id
WHERE before.change <> 'gone'
