-- One row per property, market and status: its cells whose stay is in the future, by their latest request.
-- answered_at: Start of the search that answered one of them last.
SELECT
    property_id,
    market,
    status,
    count(*) AS cells,
    max(answered_at) AS answered_at
FROM mart.cell_latest
WHERE is_within(property_id, market, check_in)
GROUP BY ALL
ORDER BY ALL
