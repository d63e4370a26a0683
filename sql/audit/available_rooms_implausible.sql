-- One row per offer with more bookable rooms than any hotel has (a placeholder of the supplier).
-- The largest hotel in the world has about seven thousand rooms.
SELECT
    offer.market,
    offer.property_id,
    offer.search_id,
    offer.offer_no,
    'the number of available rooms is ' || offer.available_rooms AS reason
FROM sweep_files.offer AS offer
WHERE offer.available_rooms > 10000
