-- One row per source, property, market and product type: the number of distinct stays, rooms and boards on sale.
-- products: Number of combinations of stay, room and board, each counted once per currency.
SELECT
    held.source,
    held.property_id,
    held.market,
    held.product_type,
    count(*) AS products
FROM (
    SELECT DISTINCT
        offer.source,
        offer.property_id,
        offer.market,
        offer.product_type,
        offer.cell_key,
        offer.room_stay_id,
        offer.room_id,
        offer.board_id,
        offer.currency
    FROM mart.offer_latest AS offer
    WHERE
        offer.room_id IS NOT NULL
        AND offer.board_id IS NOT NULL
        AND offer.currency IS NOT NULL
) AS held
GROUP BY held.source, held.property_id, held.market, held.product_type
