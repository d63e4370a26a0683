-- One row per published sweep and currency: the reference rate of the day that the sweep was made on.
-- sweep_id: Sweep: start in UTC and a short hash of what was asked.
-- currency: ISO 4217 code of the currency that the rate is of; EUR itself is listed with 1.
-- rate: Units of the currency for one euro.
-- rate_date: Business day that the rate was set for: the day of the sweep, or one of the seven days before it.
-- lowest_rate: Lowest rate of these eight days: what a supplier may have taken that is late with its rates.
-- highest_rate: Highest rate among them.
-- Of the long series only the days of sweeps are read, and kept: reports have no time to look for them.
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
