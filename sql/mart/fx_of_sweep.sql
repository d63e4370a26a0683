-- One row per published sweep and currency: the reference rate on the day of the sweep.
-- sweep_id: Sweep: start in UTC and a short hash of what was asked.
-- currency: ISO 4217 code of the currency; EUR is included with rate 1.
-- rate: Units of the currency per euro.
-- rate_date: Business day of the rate: the day of the sweep, or one of the seven days before.
-- lowest_rate: Lowest rate of these eight days, in case the supplier uses an older rate.
-- highest_rate: Highest rate of these eight days.
-- Only the days of sweeps are read from the long series, and stored: searching it would slow reports down.
WITH near AS (
    SELECT
        sweep.sweep_id,
        fx_rate.currency,
        fx_rate.rate_date,
        fx_rate.input_id,
        fx_rate.rate
    FROM mart.sweep AS sweep
    INNER JOIN lake.fx_rate AS fx_rate
        ON
            fx_rate.rate_date <= sweep.snapshot_date
            AND fx_rate.rate_date >= sweep.snapshot_date - 7
),

with_euro AS (
    SELECT near.*
    FROM near
    WHERE near.currency <> 'EUR'

    UNION ALL

    SELECT DISTINCT
        near.sweep_id,
        'EUR' AS currency,
        max(near.rate_date) OVER (PARTITION BY near.sweep_id) AS rate_date,
        NULL AS input_id,
        1::DECIMAL(18, 8) AS rate
    FROM near
)

SELECT
    with_euro.sweep_id,
    with_euro.currency,
    with_euro.rate,
    with_euro.rate_date,
    min(with_euro.rate) OVER (PARTITION BY with_euro.sweep_id, with_euro.currency) AS lowest_rate,
    max(with_euro.rate) OVER (PARTITION BY with_euro.sweep_id, with_euro.currency) AS highest_rate
FROM with_euro
QUALIFY
    row_number() OVER (
        PARTITION BY with_euro.sweep_id, with_euro.currency
        ORDER BY with_euro.rate_date DESC, with_euro.input_id DESC
    ) = 1
