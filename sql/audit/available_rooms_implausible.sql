-- One row per offer with more rooms to book than any hotel has: a marker of the supplier, not a number.
-- table: offer
-- severity: warning
-- judged: by history, the share of offers: some suppliers do so all the time, and news is only that more do
-- violators: kept, the price can be used; the number is told as what it is
-- The largest hotel of the world has about seven thousand rooms.
SELECT
    offer.market,
    offer.property_id,
    offer.search_id,
    offer.offer_no,
    'available_rooms is ' || offer.available_rooms AS reason
FROM sweep_files.offer AS offer
WHERE offer.available_rooms > 10000
