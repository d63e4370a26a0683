-- One row per market: how many of its properties are on sale.
-- market: Market.
-- properties: Number of properties that had an offer there, in list or detail answers, and have not gone quiet since.
-- If a market sells nothing at all for a day or two, what it last sold still counts as on sale. A property that is
-- no longer requested there does not count.
WITH placed AS (
    SELECT
        sale.*,
        sale.last_offered_at = max(sale.last_offered_at) OVER (PARTITION BY sale.operation, sale.market) AS is_of_last
    FROM state.property_sale AS sale
    SEMI JOIN mart.property_requested AS requested
        ON
            requested.property_id = sale.property_id
            AND requested.market = sale.market
)

SELECT
    placed.market,
    count(DISTINCT placed.property_id) AS properties
FROM placed
CROSS JOIN ref.analysis AS analysis
WHERE
    placed.quiet_date IS NULL
    OR (placed.is_of_last AND placed.quiet_nights <= analysis.silent_nights)
GROUP BY placed.market
