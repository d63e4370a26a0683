-- One row per source, property and check-in with rooms picked up, given back or re-opened: a lower bound.
-- Never sum over check-ins: a room sold for several nights is missing at each check-in that these nights concern.
-- picked_up: Number of rooms picked up (sold): for each room type the largest value of its cells, as they share rooms.
-- given_back: Number of rooms given back, or newly put on sale, counted in the same way.
-- reopenings: Number of times that room types were gone and came back, by the cell that saw it most.
-- rooms: Number of room types with a change.
-- cells: Number of cells with a change.
SELECT
    by_room.source,
    by_room.property_id,
    by_room.check_in,
    sum(by_room.picked_up)::BIGINT AS picked_up,
    sum(by_room.given_back)::BIGINT AS given_back,
    sum(by_room.reopenings)::BIGINT AS reopenings,
    count(*) AS rooms,
    max(by_room.cells) AS cells
FROM (
    SELECT
        room.source,
        room.property_id,
        room.check_in,
        room.room_id,
        max(room.picked_up) AS picked_up,
        max(room.given_back) AS given_back,
        max(room.reopenings) AS reopenings,
        count(*) AS cells
    FROM mart.pick_up AS room
    GROUP BY room.source, room.property_id, room.check_in, room.room_id
) AS by_room
GROUP BY by_room.source, by_room.property_id, by_room.check_in
