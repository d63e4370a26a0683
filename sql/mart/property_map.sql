-- One row per opaque pair of the property map that was loaded last.
SELECT pair.*
FROM lake.property_map AS pair
QUALIFY rank() OVER (ORDER BY pair.input_id DESC) = 1
