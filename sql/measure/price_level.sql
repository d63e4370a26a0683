-- One row per requested market and lead time: how many prices it has, and how high they are.
-- Counted from its cells, so that a lead time that has lost all prices is a row with 0; failed cells do not count. As
-- in `cell`, chance is judged by the number of properties and check-ins.
SELECT
    asked.market,
    asked.lead,
    coalesce(prices.cells, 0) / asked.cells AS priced_share,
    asked.stays AS priced_share__of,
    prices.level AS price_level,
    coalesce(prices.properties, 0) AS price_level__of
FROM (
    SELECT
        search.market,
        search.lead,
        sum(search.properties) AS cells,
        cells / count(DISTINCT row(
            search.operation, search.product_type, search.nights, search.party, search.currency_asked
        )) AS stays
    FROM sweep_files.search_lead AS search
    WHERE search.outcome IN ('answered', 'rejected')
    GROUP BY search.market, search.lead
) AS asked
LEFT JOIN (
    SELECT
        price.market,
        price.lead,
        count(*) AS cells,
        median(price.total::DOUBLE / price.nights) AS level,
        approx_count_distinct(price.property_id) AS properties
    FROM audit.cell_price AS price
    WHERE price.total > 0
    GROUP BY price.market, price.lead
) AS prices ON prices.market = asked.market AND prices.lead = asked.lead
