-- One row per room and image in the room's last listing.
SELECT known.*
FROM state.room_image AS known
WHERE known.change <> 'gone'
