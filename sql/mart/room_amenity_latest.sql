-- One row per room and amenity in the room's last listing.
SELECT known.*
FROM state.room_amenity AS known
WHERE known.change <> 'gone'
