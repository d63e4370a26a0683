-- One row per room of a batch, stay and night: where its price, its promotion and its stock stand.
-- A price, a promotion and a stock last 20 nights, a floor 30, each path with a beginning of its own.
WITH stay AS (
    SELECT
        check_in,
        nights,
        min(first_night) AS first_night,
        max(last_night) AS last_night
    FROM question
    GROUP BY check_in, nights
),

moving AS (
    SELECT
        room.property_no,
        room.room_no,
        stay.check_in,
        stay.nights,
        night.number::INTEGER AS night,
        night_of(stay.check_in) - night.number AS lead_days,
        concat_ws('/', room.property_no, room.room_no, stay.check_in, stay.nights) AS path,
        (night.number + drawn('price', path, 20)) // 20 AS price_epoch,
        (night.number + drawn('stock', path, 20)) // 20 AS stock_epoch,
        (night.number + drawn('floor', path, 30)) // 30 AS floor_epoch
    FROM (
        SELECT DISTINCT
            property_no,
            room_no
        FROM product
        WHERE batch_no = getvariable('batch')
    ) AS room
    CROSS JOIN stay
    INNER JOIN range(getvariable('nights')) AS night (number)
        ON night.number BETWEEN stay.first_night AND stay.last_night
)

SELECT
    property_no,
    room_no,
    check_in,
    nights,
    night,
    85 + drawn('level', concat_ws('/', path, price_epoch), 31) AS level_pct,
    CASE
        WHEN drawn('promotion', concat_ws('/', path, price_epoch), 100) < 25
            THEN 5 * (1 + drawn('share', concat_ws('/', path, price_epoch), 6))
        ELSE 0
    END AS promotion_pct,
    85 + drawn('floor share', concat_ws('/', path, floor_epoch), 15) AS floor_pct,
    1 + drawn('rooms left', concat_ws('/', path, stock_epoch), 12) AS available_rooms,
    drawn('sells out', path, 100) < 15 AND lead_days < drawn('sold out at', path, 40) AS is_sold_out
FROM moving
