-- One row per sweep, operation and market: the shares of planned cells that were swept and that were answered.
-- swept: Number of cells that were requested: planned - not_swept.
-- answered: Number of cells that were answered: `offered`, `no_offer` or `absent`.
-- swept_share: swept / planned.
-- answered_share: answered / planned.
SELECT
    counted.sweep_id,
    any_value(counted.snapshot_date) AS snapshot_date,
    counted.operation,
    counted.market,
    sum(counted.planned)::BIGINT AS planned,
    sum(counted.planned - counted.not_swept)::BIGINT AS swept,
    sum(counted.planned - counted.rejected - counted.failed - counted.not_swept)::BIGINT AS answered,
    sum(counted.rejected)::BIGINT AS rejected,
    sum(counted.failed)::BIGINT AS failed,
    sum(counted.not_swept)::BIGINT AS not_swept,
    swept::DOUBLE / nullif(sum(counted.planned), 0) AS swept_share,
    answered::DOUBLE / nullif(sum(counted.planned), 0) AS answered_share
FROM state.cell_count AS counted
GROUP BY counted.sweep_id, counted.operation, counted.market
