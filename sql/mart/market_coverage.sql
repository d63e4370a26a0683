-- One row per source, market and product type: requested cells whose stay is in the future, and those answered.
-- planned: Number of requested cells whose stay is in the future.
-- answered: Number of requested cells whose latest request was answered, with or without an offer.
SELECT
    CASE cell.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
    cell.market,
    cell.product_type,
    count(*) AS planned,
    count(*) FILTER (WHERE mart.is_answered(cell.status)) AS answered
FROM mart.cell_requested AS cell
GROUP BY ALL
