-- One row per market with cells that the last published sweep ended before requesting.
-- not_swept: Number of these cells.
SELECT
    count_of.market,
    sum(count_of.not_swept)::BIGINT AS not_swept
FROM state.cell_count AS count_of
WHERE count_of.sweep_id = (SELECT max_by(sweep.sweep_id, sweep.started_at) FROM mart.sweep AS sweep)
GROUP BY count_of.market
HAVING sum(count_of.not_swept) > 0
ORDER BY count_of.market
