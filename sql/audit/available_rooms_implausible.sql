-- One row per offer with more rooms to book than any hotel has: a marker of the supplier, not a number.
-- The largest hotel of the world has about seven thousand rooms.
SELECT
    offer.market,
    offer.property_id,
    offer.search_id,
    offer.offer_no,
    'available_rooms is ' || offer.available_rooms AS reason
FROM sweep_files.offer AS offer
WHERE offer.available_rooms > 10000
