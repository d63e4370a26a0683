-- One row per property in the properties file loaded last, or named by detail answers.
-- property_name: Name in the properties file, else from detail answers; NULL: neither has one.
-- is_listed: Whether the properties file lists it.
WITH listed AS (
    SELECT properties.*
    FROM lake.property_file AS properties
    QUALIFY rank() OVER (ORDER BY properties.input_id DESC) = 1
),

known AS (
    SELECT property_id FROM listed
    UNION
    SELECT property_id FROM mart.property_latest
)

SELECT
    known.property_id,
    coalesce(listed.property_name, answered.property_name) AS property_name,
    listed.city,
    listed.country,
    listed.stars,
    listed.brand,
    listed.property_group,
    listed.latitude,
    listed.longitude,
    listed.own_code,
    listed.property_id IS NOT NULL AS is_listed
FROM known
LEFT JOIN listed ON listed.property_id = known.property_id
LEFT JOIN mart.property_latest AS answered ON answered.property_id = known.property_id
