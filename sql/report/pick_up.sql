-- One row per source, property and check-in with rooms picked up, given back or re-opened: a lower bound.
-- picked_up: Rooms picked up: of each room the largest of its cells, as they share it, summed over the rooms.
-- given_back: Rooms given back or put on sale in addition, counted in the same way.
-- reopenings: Rooms that were gone and came back, each as often as the cell that saw it most.
-- rooms: Room types with a change.
-- cells: Cells that saw a change.
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
