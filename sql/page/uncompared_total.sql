-- One row: how many properties are on sale in two or more other markets, but not in the reference market.
-- properties: Number of them; one that has gone quiet in a market is not on sale there.
WITH sold AS (
    SELECT DISTINCT
        sale.property_id,
        sale.market
    FROM state.property_sale AS sale
    SEMI JOIN mart.property_requested AS requested
        ON
            requested.property_id = sale.property_id
            AND requested.market = sale.market
    CROSS JOIN ref.analysis AS analysis
    WHERE
        sale.quiet_nights < analysis.quiet_nights
        AND is_within(sale.property_id, NULL, NULL)
)

SELECT count(*) AS properties
FROM (
    SELECT sold.property_id
    FROM sold
    CROSS JOIN mart.reference_market AS chosen
    GROUP BY sold.property_id, chosen.reference_market
    HAVING
        count(*) FILTER (WHERE sold.market <> chosen.reference_market) >= 2
        AND count(*) FILTER (WHERE sold.market = chosen.reference_market) = 0
) AS uncompared
