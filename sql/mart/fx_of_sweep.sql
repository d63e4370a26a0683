-- One row per published sweep and currency: the reference rate on the day of the sweep.
-- sweep_id: Sweep: start in UTC and a short hash of what was asked.
-- currency: ISO 4217 code of the currency; EUR is included with rate 1.
-- rate: Units of the currency per euro.
-- rate_date: Business day of the rate: the day of the sweep, or one of the seven days before.
-- lowest_rate: Lowest rate of the sweep's day and the seven before, in case the supplier uses an older rate.
-- highest_rate: Highest rate of the sweep's day and the seven before.
-- lowest_month_rate: Lowest rate of the sweep's day and the thirty before, in case the supplier seldom updates rates.
-- highest_month_rate: Highest rate of the sweep's day and the thirty before.
-- month_since: First of these thirty-one days with a rate; NULL: the euro, which needs none.
-- Only the days of sweeps are taken from the long series, and stored: searching it would slow reports down.
WITH near AS (
    SELECT
        sweep.sweep_id,
        sweep.snapshot_date,
        fx_rate.currency,
        fx_rate.rate_date,
        -- A file replaces the rates of earlier ones: a corrected rate is neither the lowest nor the highest.
        arg_max(fx_rate.rate, fx_rate.input_id) AS rate
    FROM mart.sweep AS sweep
    INNER JOIN lake.fx_rate AS fx_rate
        ON
            fx_rate.rate_date <= sweep.snapshot_date
            AND fx_rate.rate_date >= sweep.snapshot_date - 30
    GROUP BY sweep.sweep_id, sweep.snapshot_date, fx_rate.currency, fx_rate.rate_date
),

with_euro AS (
    SELECT near.*
    FROM near
    WHERE near.currency <> 'EUR'

    UNION ALL

    SELECT DISTINCT
        near.sweep_id,
        near.snapshot_date,
        'EUR' AS currency,
        max(near.rate_date) OVER (PARTITION BY near.sweep_id) AS rate_date,
        1::DECIMAL(18, 8) AS rate
    FROM near
)

SELECT
    with_euro.sweep_id,
    with_euro.currency,
    with_euro.rate,
    with_euro.rate_date,
    min(with_euro.rate) FILTER (WHERE with_euro.rate_date >= with_euro.snapshot_date - 7) OVER of_sweep AS lowest_rate,
    max(with_euro.rate) FILTER (WHERE with_euro.rate_date >= with_euro.snapshot_date - 7) OVER of_sweep AS highest_rate,
    min(with_euro.rate) OVER of_sweep AS lowest_month_rate,
    max(with_euro.rate) OVER of_sweep AS highest_month_rate,
    CASE WHEN with_euro.currency <> 'EUR' THEN min(with_euro.rate_date) OVER of_sweep END AS month_since
FROM with_euro
WINDOW of_sweep AS (PARTITION BY with_euro.sweep_id, with_euro.currency)
QUALIFY
    with_euro.rate_date >= with_euro.snapshot_date - 7
    AND row_number() OVER (of_sweep ORDER BY with_euro.rate_date DESC) = 1
