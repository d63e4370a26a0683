-- One row per hotel-only cell without any floor that had one when it was last published.
-- table: offer
-- severity: warning
-- violators: kept
SELECT
    move.market,
    move.property_id,
    move.search_id,
    NULL::INTEGER AS offer_no,
    move.floors_before || ' offers stated a floor before, none does now' AS reason
FROM audit.price_move AS move
WHERE move.product_type = 'Hotel' AND move.floors_before > 0 AND move.floors = 0
