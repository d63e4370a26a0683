-- One row per amenity of a room that this sweep changes. A room that was listed without amenities has lost them all.
WITH listed AS (
    SELECT
        property_id,
        room_id,
        search_id,
        amenities
    FROM sweep_files.room_content
    WHERE amenities IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY property_id, room_id ORDER BY search_id ASC, room_no ASC) = 1
),

items AS (
    SELECT
        listed.property_id,
        listed.room_id,
        listed.search_id,
        unnest(listed.amenities) AS item,
        generate_subscripts(listed.amenities, 1) AS place
    FROM listed
),

observed AS (
    SELECT
        property_id,
        room_id,
        search_id,
        coalesce(item['amenity_id']::VARCHAR, '~' || item['amenity_name']) AS amenity_key,
        item['amenity_id'] AS amenity_id,
        item['amenity_name'] AS amenity_name
    FROM items
    WHERE coalesce(item['amenity_id']::VARCHAR, item['amenity_name']) IS NOT NULL
    -- An answer may name an amenity twice.
    QUALIFY row_number() OVER (PARTITION BY property_id, room_id, amenity_key ORDER BY place) = 1
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
    observed.amenity_key,
    observed.amenity_id,
    coalesce(observed.amenity_name, before.amenity_name) AS amenity_name
FROM observed
CROSS JOIN night.sweep AS sweep
LEFT JOIN state.room_amenity AS before
    ON
        before.property_id = observed.property_id
        AND before.room_id IS NOT DISTINCT FROM observed.room_id
        AND before.amenity_key = observed.amenity_key
WHERE
    before.property_id IS NULL
    OR before.change = 'gone'
    OR before.amenity_name IS DISTINCT FROM coalesce(observed.amenity_name, before.amenity_name)

UNION ALL

SELECT
    sweep.sweep_id,
    listed.search_id,
    sweep.started_at AS changed_at,
    'gone' AS change,
    before.property_id,
    before.room_id,
    before.amenity_key,
    before.amenity_id,
    before.amenity_name
FROM state.room_amenity AS before
CROSS JOIN night.sweep AS sweep
INNER JOIN listed
    ON
        listed.property_id = before.property_id
        AND listed.room_id IS NOT DISTINCT FROM before.room_id
ANTI JOIN observed
    ON
        observed.property_id = before.property_id
        AND observed.room_id IS NOT DISTINCT FROM before.room_id
        AND observed.amenity_key = before.amenity_key
WHERE before.change <> 'gone'
