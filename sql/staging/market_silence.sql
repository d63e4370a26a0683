-- One row per source, market and sweep answered without a single offer, within silent_nights of one with some.
-- It is mart.market_silence for what a night changes: views are written later in the night.
-- started_at: Start of that sweep.
-- sold_at: Start of the last sweep before it that found an offer there.
WITH answered AS (
    SELECT
        count_of.operation,
        count_of.market,
        sweep.started_at,
        sweep.snapshot_date,
        sum(count_of.offered) > 0 AS is_selling
    FROM state.cell_count AS count_of
    INNER JOIN mart.sweep AS sweep ON sweep.sweep_id = count_of.sweep_id
    GROUP BY count_of.operation, count_of.market, sweep.started_at, sweep.snapshot_date
    HAVING sum(count_of.planned) > sum(count_of.rejected + count_of.failed + count_of.not_swept)
)

SELECT
    CASE answered.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
    answered.market,
    answered.started_at,
    max(answered.started_at) FILTER (WHERE answered.is_selling) OVER so_far AS sold_at
FROM answered
CROSS JOIN ref.analysis AS analysis
WINDOW
    so_far AS (
        PARTITION BY answered.operation, answered.market
        ORDER BY answered.started_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
QUALIFY
    NOT answered.is_selling
    AND max(answered.snapshot_date) FILTER (WHERE answered.is_selling) OVER so_far
    >= answered.snapshot_date - analysis.silent_nights
