-- One row per operation and market without any offer tonight that had some within silent_nights.
-- It has more likely failed than sold out: no finding ends by its absence, and none begins.
SELECT
    counted.operation,
    counted.market
FROM state.cell_count AS counted
CROSS JOIN night.sweep AS sweep
CROSS JOIN ref.analysis AS analysis
GROUP BY counted.operation, counted.market, sweep.sweep_id, sweep.snapshot_date, analysis.silent_nights
HAVING
    coalesce(sum(counted.offered) FILTER (WHERE counted.sweep_id = sweep.sweep_id), 0) = 0
    AND max(counted.snapshot_date) FILTER (WHERE counted.offered > 0)
    >= sweep.snapshot_date - analysis.silent_nights
