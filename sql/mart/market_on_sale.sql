-- One row per market: how many of its properties are on sale.
-- market: Market.
-- properties: Number of properties that have had an offer there, in list or detail answers, and have not gone quiet.
SELECT
    sale.market,
    count(DISTINCT sale.property_id) AS properties
FROM state.property_sale AS sale
WHERE sale.quiet_date IS NULL
GROUP BY sale.market
