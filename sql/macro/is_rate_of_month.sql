-- Whether a rate of the last 31 days explains a mark-up of size_pct on the rate of the day, within the tolerance.
CREATE OR REPLACE MACRO mart.is_rate_of_month(size_pct, rate, lowest_month_rate, highest_month_rate, tolerance_pct) AS (
    rate * (1 + size_pct / 100)
    BETWEEN lowest_month_rate * (1 - tolerance_pct / 100) AND highest_month_rate * (1 + tolerance_pct / 100)
)
