-- One row per room and image in its last listing.
SELECT known.*
FROM state.room_image AS known
WHERE known.change <> 'gone'
