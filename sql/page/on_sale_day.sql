-- One row per property and check-in: its cells of list searches, as last answered.
-- on_sale_pct: Cells with an offer, in percent of the cells.
SELECT
    property_id,
    check_in,
    100.0 * count(*) FILTER (WHERE answered_status = 'offered') / count(*) AS on_sale_pct,
    count(*) AS cells
FROM mart.cell_latest
WHERE operation = 'multi' AND answered_status IS NOT NULL AND is_within(property_id, market, check_in)
GROUP BY property_id, check_in
ORDER BY ALL
