-- One row per market with cells that the supplier rejected in the last published sweep, or that it did not reach.
-- rejected: Number of cells whose request the supplier rejected.
-- not_swept: Number of cells that the sweep ended before requesting.
SELECT
    count_of.market,
    sum(count_of.rejected)::BIGINT AS rejected,
    sum(count_of.not_swept)::BIGINT AS not_swept
FROM state.cell_count AS count_of
WHERE count_of.sweep_id = (SELECT max_by(sweep.sweep_id, sweep.started_at) FROM mart.sweep AS sweep)
GROUP BY count_of.market
HAVING sum(count_of.rejected + count_of.not_swept) > 0
ORDER BY count_of.market
