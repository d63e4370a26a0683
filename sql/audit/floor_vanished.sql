-- One row per property and market whose hotel-only offers state no floor tonight, but did when last published.
-- With their earlier share of stated floors, this many without one would happen by chance once in a million.
SELECT
    property.market,
    property.property_id,
    property.search_id,
    NULL::INTEGER AS offer_no,
    property.floors_before || ' of ' || property.offers_before || ' offers stated a floor before, none of '
    || property.offers || ' does now' AS reason
FROM (
    SELECT
        move.market,
        move.property_id,
        min(move.search_id) AS search_id,
        sum(move.offers) AS offers,
        sum(move.offers_before) AS offers_before,
        sum(move.floors) AS floors,
        sum(move.floors_before) AS floors_before
    FROM audit.price_move AS move
    WHERE move.product_type = 'Hotel'
    GROUP BY move.market, move.property_id
) AS property
WHERE
    property.floors = 0
    AND pow(1 - property.floors_before / (property.offers_before + 1), property.offers) < 1e-6
