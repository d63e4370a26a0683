-- One row per property and status: its cells whose stay is in the future, by their latest request.
SELECT
    property_id,
    status,
    count(*) AS cells
FROM mart.cell_latest
WHERE is_within(property_id, market, check_in)
GROUP BY ALL
