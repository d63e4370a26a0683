-- One row per image that a room was last listed with.
SELECT known.*
FROM state.room_image AS known
WHERE known.change <> 'gone'
