-- An amount times rate / per, to the minor unit, halves up; NULL where one of them is unknown, or the result is absurd.
-- A float may lie below the half that a product is: close to one, whole numbers decide, which take ten times as long.
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
