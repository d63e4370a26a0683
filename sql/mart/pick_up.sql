-- One row per source, cell and room whose number of bookable rooms has ever changed: a lower bound of rooms sold.
-- Rooms that were sold and given back between two answers are not seen, and a room that goes off sale is
-- not counted. Cells of the same nights share their rooms: never sum over cells.
-- picked_up: Rooms sold: decreases of the number of bookable rooms, summed over consecutive answers.
-- given_back: Rooms returned: increases of that number, summed: cancellations, or more rooms put on sale.
-- reopenings: Number of times that the room was gone and came back.
-- changes: Number of answers whose number of bookable rooms differs from the answer before.
-- first_changed_at: Start of the first sweep that saw a change.
-- last_changed_at: Start of the last sweep that saw a change.
SELECT
    change.source,
    change.property_id,
    change.cell_key,
    change.room_id,
    any_value(change.market) AS market,
    any_value(change.product_type) AS product_type,
    any_value(change.check_in) AS check_in,
    any_value(change.nights) AS nights,
    any_value(change.party) AS party,
    coalesce(sum(greatest(change.rooms_before::BIGINT - change.rooms_after, 0)), 0)::BIGINT AS picked_up,
    coalesce(sum(greatest(change.rooms_after::BIGINT - change.rooms_before, 0)), 0)::BIGINT AS given_back,
    count(*) FILTER (WHERE change.rooms_before IS NULL) AS reopenings,
    count(change.rooms_before) AS changes,
    min(change.changed_at) AS first_changed_at,
    max(change.changed_at) AS last_changed_at
FROM state.stock_change AS change
GROUP BY change.source, change.property_id, change.cell_key, change.room_id
