-- One row per amenity that a room was last listed with.
SELECT known.*
FROM state.room_amenity AS known
WHERE known.change <> 'gone'
