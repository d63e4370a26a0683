-- One row per operation: mean cost of its searches in `lake.search`: latency in seconds, and bytes per cell.
-- On generated nights, the tables take 20 bytes per offer.
SELECT
    search.operation,
    count(DISTINCT search.sweep_id) AS sweeps,
    sum(search.wire_bytes) / greatest(sum(search.properties), 1) AS wire_bytes_per_cell,
    sum(search.offers) * 20.0 / greatest(sum(search.properties), 1) AS table_bytes_per_cell,
    avg(search.latency_ms) / 1000.0 AS latency_seconds
FROM lake.search AS search
WHERE search.outcome = 'answered'
GROUP BY search.operation
