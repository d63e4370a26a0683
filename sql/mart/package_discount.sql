-- One row per source and hotel-only offer whose package twin (same market, room, board, policy) is in the same sweep.
-- hotel_total: Total of the hotel-only offer, in currency.
-- package_total: Total of the same offer inside a package, in currency.
-- hotel_floor: Floor of the hotel-only offer, in currency; NULL: none stated. A floor stated for a package is ignored.
-- discount: hotel_total - package_total, in currency; < 0: the package rate is dearer.
-- discount_pct: 100 x (1 - package_total / hotel_total); < 0: the package rate is dearer.
-- leak: hotel_floor - package_total, in currency, if > 0: sold alone, the package rate undercuts the floor by this.
-- leak_pct: leak in percent of hotel_floor; > 0.
-- package_offer_key: Offer key of the offer inside a package.
-- package_search_id: Search that last observed the offer inside a package.
-- package_offer_no: Number of that offer in the search's answer.
SELECT
    hotel.source,
    hotel.offer_key,
    package.offer_key AS package_offer_key,
    hotel.cell_key,
    hotel.property_id,
    hotel.market,
    hotel.product_type,
    hotel.check_in,
    hotel.nights,
    hotel.party,
    hotel.currency_asked,
    hotel.currency,
    hotel.room_no,
    hotel.room_id,
    hotel.board_id,
    hotel.policy_key,
    hotel.total AS hotel_total,
    package.total AS package_total,
    nullif(hotel.floor, 0) AS hotel_floor,
    (hotel.total - package.total)::DECIMAL(18, 4) AS discount,
    100 * (1 - package.total::DOUBLE / hotel.total::DOUBLE) AS discount_pct,
    CASE WHEN hotel.floor > package.total THEN (hotel.floor - package.total)::DECIMAL(18, 4) END AS leak,
    100 * leak::DOUBLE / hotel.floor::DOUBLE AS leak_pct,
    hotel.seen_sweep_id,
    hotel.seen_search_id,
    hotel.seen_offer_no,
    package.seen_search_id AS package_search_id,
    package.seen_offer_no AS package_offer_no
FROM mart.comparable_offer AS hotel
INNER JOIN mart.comparable_offer AS package
    ON
        package.match_grade = hotel.match_grade
        AND package.match_key = hotel.match_key
        AND package.property_id = hotel.property_id
        AND package.market = hotel.market
        AND package.currency = hotel.currency
        AND package.currency_asked IS NOT DISTINCT FROM hotel.currency_asked
WHERE
    hotel.match_grade = 'exact'
    AND hotel.product_type = 'Hotel'
    AND package.product_type = 'Package'
