-- How far two amounts may differ and still meet: a share of the one compared with, and at least one minor unit.
-- Cut to four decimals, not rounded: an amount that differs by more than the share never meets.
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
