-- Largest difference from an amount that still meets: a percentage of it, but at least one minor unit.
-- Truncated to four decimals, not rounded: an amount that differs by more than the percentage never meets.
CREATE OR REPLACE MACRO mart.tolerance(amount, tolerance_pct, minor_unit) AS (
    CASE
        WHEN amount IS NOT NULL
            THEN
                greatest(
                    (floor(amount::DOUBLE * tolerance_pct * 100 + 0.000001) / 10000)::DECIMAL(18, 4),
                    coalesce(minor_unit, 0.01)::DECIMAL(18, 4)
                )
    END
)
