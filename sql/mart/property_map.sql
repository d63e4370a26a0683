-- One row per pair of a branded and an unbranded id in the property map loaded last.
SELECT pair.*
FROM lake.property_map AS pair
QUALIFY rank() OVER (ORDER BY pair.input_id DESC) = 1
