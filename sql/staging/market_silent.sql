-- One row per operation and market without any offer tonight that had some within silent_nights.
-- It has more likely failed than sold out: no finding and no parity episode ends by its absence, and none begins.
-- The offers of a market may all be of other ranges.
SELECT
    counted.operation,
    counted.market
FROM state.cell_count AS counted
CROSS JOIN night.sweep AS sweep
CROSS JOIN ref.analysis AS analysis
ANTI JOIN sweep_files.cell AS cell
    ON
        cell.status = 'offered'
        AND cell.operation = counted.operation
        AND cell.market = counted.market
GROUP BY counted.operation, counted.market, sweep.snapshot_date, analysis.silent_nights
-- An earlier sweep of the day does not make it silent if no night may be.
HAVING
    analysis.silent_nights > 0
    AND max(counted.snapshot_date) FILTER (WHERE counted.offered > 0)
    >= sweep.snapshot_date - analysis.silent_nights
