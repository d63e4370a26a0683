-- One row per market with cells whose request the supplier rejected in the last published sweep.
-- rejected: Number of these cells.
SELECT
    count_of.market,
    sum(count_of.rejected)::BIGINT AS rejected
FROM state.cell_count AS count_of
WHERE count_of.sweep_id = (SELECT max_by(sweep.sweep_id, sweep.started_at) FROM mart.sweep AS sweep)
GROUP BY count_of.market
HAVING sum(count_of.rejected) > 0
ORDER BY count_of.market
