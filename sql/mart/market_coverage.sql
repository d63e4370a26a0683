-- One row per source, market and product type: the cells that sweeps asked about, as each was asked about last.
-- planned: Cells asked about whose stay lies ahead.
-- answered: Cells of these that were answered when they were asked about last, with an offer or without.
SELECT
    CASE cell.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
    cell.market,
    cell.product_type,
    count(*) AS planned,
    count(*) FILTER (WHERE cell.status IN ('offered', 'no_offer', 'absent')) AS answered
FROM state.cell AS cell
GROUP BY ALL
