-- One row per property: what is fixed about it. Ids of the last fiftieth lie above 2^53.
SELECT
    number::INTEGER AS property_no,
    (number // 100)::INTEGER AS batch_no,
    CASE
        WHEN number >= getvariable('properties') - getvariable('properties') // 50 THEN 9007199254740993 + 2 * number
        ELSE 100000 + 7 * number
    END::BIGINT AS property_id,
    4500 + drawn('nightly', number, 17500) AS nightly_cents,
    1 + drawn('rooms', number, 5) AS rooms,
    1 + drawn('boards', number, 2) AS boards,
    1 + drawn('policies', number, 3) AS policies,
    84 + drawn('package', number, 12) AS package_pct,
    drawn('hotel only', number, 100) < 30 AS is_hotel_only,
    drawn('states floor', number, 100) < 88 AS states_floor,
    [7, 10, 12, 19, 21][1 + drawn('tax', number, 5)] AS tax_pct,
    CASE WHEN drawn('resort', number, 4) = 0 THEN 500 + drawn('resort fee', number, 3000) END AS resort_cents,
    CASE WHEN drawn('city', number, 5) < 3 THEN 80 + drawn('city tax', number, 600) END AS city_cents,
    -- What is wrong with a few of them, for the analytics to find.
    number % 89 = 3 AS is_dear_abroad,
    number % 97 = 5 AS has_phantoms,
    number % 83 = 7 AS eats_promotions,
    -- These are searched one by one as well.
    number % 50 = 0 AS is_looked_at
FROM range(getvariable('properties')) AS numbers (number)
