-- One row per opaque pair in the property map loaded last.
SELECT pair.*
FROM lake.property_map AS pair
QUALIFY rank() OVER (ORDER BY pair.input_id DESC) = 1
