-- One row per source, property, market and product type: how many different things are on sale, whatever their policy.
-- products: Stays with a room and a board, each counted once in a currency.
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
    FROM state.offer_open AS offer
    WHERE
        offer.is_offered
        AND offer.room_id IS NOT NULL
        AND offer.board_id IS NOT NULL
        AND offer.currency IS NOT NULL
) AS held
GROUP BY held.source, held.property_id, held.market, held.product_type
