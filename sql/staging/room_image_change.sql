-- One row per image of a room that this sweep changes. A room that was listed without images has lost them all.
WITH listed AS (
    SELECT
        property_id,
        room_id,
        search_id,
        images
    FROM sweep_files.room_content
    WHERE images IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY property_id, room_id ORDER BY search_id ASC, room_no ASC) = 1
),

items AS (
    SELECT
        listed.property_id,
        listed.room_id,
        listed.search_id,
        unnest(listed.images) AS image_url,
        generate_subscripts(listed.images, 1)::INTEGER - 1 AS image_no
    FROM listed
),

observed AS (
    SELECT *
    FROM items
    -- An answer may name an image twice.
    QUALIFY row_number() OVER (PARTITION BY property_id, room_id, image_url ORDER BY image_no) = 1
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
    observed.image_url,
    observed.image_no
FROM observed
CROSS JOIN night.sweep AS sweep
LEFT JOIN state.room_image AS before
    ON
        before.property_id = observed.property_id
        AND before.room_id IS NOT DISTINCT FROM observed.room_id
        AND before.image_url = observed.image_url
WHERE
    before.property_id IS NULL
    OR before.change = 'gone'
    OR before.image_no <> observed.image_no

UNION ALL

SELECT
    sweep.sweep_id,
    listed.search_id,
    sweep.started_at AS changed_at,
    'gone' AS change,
    before.property_id,
    before.room_id,
    before.image_url,
    before.image_no
FROM state.room_image AS before
CROSS JOIN night.sweep AS sweep
INNER JOIN listed
    ON
        listed.property_id = before.property_id
        AND listed.room_id IS NOT DISTINCT FROM before.room_id
ANTI JOIN observed
    ON
        observed.property_id = before.property_id
        AND observed.room_id IS NOT DISTINCT FROM before.room_id
        AND observed.image_url = before.image_url
WHERE before.change <> 'gone'
