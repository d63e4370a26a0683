-- amount x rate / per, rounded half up to the minor unit; NULL: one of them is unknown, or the result is out of range.
-- A float may fall just below an exact half: close to one, integers decide, which take ten times as long.
CREATE OR REPLACE MACRO mart.converted(amount, rate, per, minor_unit) AS (
    CASE
        WHEN
            abs(amount::DOUBLE * rate::DOUBLE / per::DOUBLE / coalesce(minor_unit, 0.01)::DOUBLE) < 1e9
            AND abs(
                abs(amount::DOUBLE * rate::DOUBLE / per::DOUBLE / coalesce(minor_unit, 0.01)::DOUBLE) % 1 - 0.5
            ) > 0.0001
            THEN
                (
                    round(amount::DOUBLE * rate::DOUBLE / per::DOUBLE / coalesce(minor_unit, 0.01)::DOUBLE)
                    * coalesce(minor_unit, 0.01)::DOUBLE
                )::DECIMAL(18, 4)
        ELSE
            try_cast(
                try(
                    (
                        2 * (amount::DECIMAL(38, 4) * 10000)::HUGEINT * (rate::DECIMAL(38, 8) * 100000000)::HUGEINT
                        + sign(amount)::HUGEINT * (per::DECIMAL(38, 8) * 100000000)::HUGEINT
                        * (coalesce(minor_unit, 0.01)::DECIMAL(38, 4) * 10000)::HUGEINT
                    )
                    // (
                        2 * (per::DECIMAL(38, 8) * 100000000)::HUGEINT
                        * (coalesce(minor_unit, 0.01)::DECIMAL(38, 4) * 10000)::HUGEINT
                    )
                    * (coalesce(minor_unit, 0.01)::DECIMAL(38, 4) * 10000)::HUGEINT
                )::DECIMAL(38, 0) * 0.0001::DECIMAL(5, 4) AS DECIMAL(18, 4)
            )
    END
)
