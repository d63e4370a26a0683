-- One row per source, market, product type and time of reference_days or more in which no sweep got an answer.
-- began_at: Start of the last answered sweep before it.
-- ended_at: Start of the next answered sweep.
-- days: Days between them.
WITH answered AS (
    SELECT
        count_of.operation,
        count_of.market,
        count_of.product_type,
        sweep.started_at
    FROM state.cell_count AS count_of
    INNER JOIN mart.sweep AS sweep ON sweep.sweep_id = count_of.sweep_id
    GROUP BY count_of.operation, count_of.market, count_of.product_type, sweep.started_at
    HAVING sum(count_of.planned) > sum(count_of.rejected + count_of.failed + count_of.not_swept)
)

SELECT
    CASE answered.operation WHEN 'single' THEN 'detail' ELSE answered.operation END AS source,
    answered.market,
    answered.product_type,
    lag(answered.started_at) OVER (
        PARTITION BY answered.operation, answered.market, answered.product_type ORDER BY answered.started_at
    ) AS began_at,
    answered.started_at AS ended_at,
    date_diff('day', mart.utc(began_at), mart.utc(ended_at)) AS days
FROM answered
CROSS JOIN ref.analysis AS analysis
-- From one day to the next is no pause.
QUALIFY days >= greatest(analysis.reference_days, 2)
