-- One row per market: how many of its properties are on sale.
-- market: Market.
-- properties: Properties that have had an offer there, in a list or a detail answer, and have not gone quiet.
SELECT
    sale.market,
    count(DISTINCT sale.property_id) AS properties
FROM state.property_sale AS sale
WHERE sale.quiet_date IS NULL
GROUP BY sale.market
