-- A fraction of ten-thousandths as an amount, halves rounded away from zero; one that does not fit is undetermined.
CREATE OR REPLACE MACRO mart.penalty_of_units(dividend, divisor, rule) AS (
    CASE
        WHEN (2 * abs(dividend) + divisor) // (2 * divisor) >= 1000000000000000000
            THEN struct_pack(amount := NULL::DECIMAL(18, 4), rule := 'undetermined')
        ELSE
            struct_pack(
                amount := (
                    (sign(dividend) * ((2 * abs(dividend) + divisor) // (2 * divisor)))::DECIMAL(20, 0)
                    * 0.0001::DECIMAL(4, 4)
                )::DECIMAL(18, 4),
                rule := rule
            )
    END
)
