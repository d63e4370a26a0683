-- One row per source, hotel-only offer and currency whose floor at least two markets were seen to state in one sweep.
-- Floors in different currencies are never compared: a reference rate would be most of what they differ by.
-- markets: Markets that state a floor for it in this currency.
-- lowest_floor: Lowest of the floors, in currency.
-- highest_floor: Highest of the floors, in currency.
-- lowest_market: Market with the lowest floor, the first by name among equals.
-- highest_market: Market with the highest floor, the first by name among equals.
-- dispersion_pct: 100 x (highest_floor - lowest_floor) / lowest_floor.
SELECT
    offer.source,
    offer.property_id,
    any_value(offer.check_in) AS check_in,
    any_value(offer.nights) AS nights,
    any_value(offer.party) AS party,
    any_value(offer.room_no) AS room_no,
    any_value(offer.room_id) AS room_id,
    any_value(offer.board_id) AS board_id,
    any_value(offer.policy_key) AS policy_key,
    offer.currency,
    any_value(offer.seen_sweep_id) AS seen_sweep_id,
    count(DISTINCT offer.market) AS markets,
    min(offer.floor) AS lowest_floor,
    max(offer.floor) AS highest_floor,
    arg_min(offer.market, (offer.floor, offer.market)) AS lowest_market,
    arg_min(offer.market, (-offer.floor, offer.market)) AS highest_market,
    100 * (highest_floor - lowest_floor)::DOUBLE / lowest_floor::DOUBLE AS dispersion_pct -- noqa: RF02
FROM mart.comparable_offer AS offer
WHERE
    offer.match_grade = 'exact'
    AND offer.product_type = 'Hotel'
    AND offer.floor > 0
GROUP BY offer.source, offer.property_id, offer.match_key, offer.currency
HAVING count(DISTINCT offer.market) > 1
