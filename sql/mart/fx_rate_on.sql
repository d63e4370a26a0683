-- One row per day and currency with a reference rate on that day or in the seven days before it.
-- on_date: Day that the rate applies to; on weekends and holidays the rate of the last business day applies.
-- currency: ISO 4217 code of the currency; EUR is included with rate 1.
-- rate: Units of the currency per euro.
-- rate_date: Business day of the rate.
-- age_days: Days from rate_date to on_date.
WITH newest AS (
    SELECT
        fx_rate.rate_date,
        fx_rate.currency,
        fx_rate.rate
    FROM lake.fx_rate AS fx_rate
    QUALIFY
        row_number() OVER (
            PARTITION BY fx_rate.rate_date, fx_rate.currency
            ORDER BY fx_rate.input_id DESC
        ) = 1
),

with_euro AS (
    SELECT
        newest.rate_date,
        newest.currency,
        newest.rate
    FROM newest

    UNION ALL

    SELECT DISTINCT
        newest.rate_date,
        'EUR' AS currency,
        1::DECIMAL(18, 8) AS rate
    FROM newest
)

SELECT
    with_euro.rate_date + later.days::INTEGER AS on_date,
    with_euro.currency,
    with_euro.rate,
    with_euro.rate_date,
    later.days::INTEGER AS age_days
FROM with_euro
CROSS JOIN range(8) AS later (days)
QUALIFY
    row_number() OVER (
        PARTITION BY with_euro.currency, on_date
        ORDER BY with_euro.rate_date DESC
    ) = 1
