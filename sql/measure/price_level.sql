-- One row per market and lead time: how high its prices are.
-- price_level: critical both level: median over the cells of the lowest price for a night
SELECT
    price.market,
    price.lead,
    median(price.total::DOUBLE / price.nights) AS price_level,
    approx_count_distinct(price.property_id) AS price_level__of
FROM audit.cell_price AS price
WHERE price.total > 0
GROUP BY price.market, price.lead
