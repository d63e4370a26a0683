-- One row per operation: what a search cost in the sweeps that `lake.search` holds. Latency in seconds.
-- On generated nights, the tables take twenty bytes an offer.
SELECT
    search.operation,
    count(DISTINCT search.sweep_id) AS sweeps,
    sum(search.wire_bytes) / greatest(sum(search.properties), 1) AS wire_bytes_per_cell,
    sum(search.offers) * 20.0 / greatest(sum(search.properties), 1) AS table_bytes_per_cell,
    avg(search.latency_ms) / 1000.0 AS latency_seconds
FROM lake.search AS search
WHERE search.outcome = 'answered'
GROUP BY search.operation
