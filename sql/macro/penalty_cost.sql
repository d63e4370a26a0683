-- Cost of one cancellation penalty and the rule used, as in pipeline/domain/penalties.py; amount NULL: undetermined.
CREATE OR REPLACE MACRO mart.penalty_cost(total, nights, amount, penalty_pct, penalty_nights, is_refundable) AS (
    CASE
        WHEN amount IS NOT NULL THEN struct_pack(amount := amount::DECIMAL(18, 4), rule := 'amount')
        WHEN
            penalty_pct IS NULL AND coalesce(penalty_nights, 0) = 0 AND is_refundable IS FALSE AND total IS NOT NULL
            THEN struct_pack(amount := total::DECIMAL(18, 4), rule := 'not_refundable')
        WHEN
            total IS NULL
            OR try_cast(penalty_pct::VARCHAR AS DECIMAL(12, 6)) IS NULL
            OR try_cast(penalty_pct::VARCHAR AS DECIMAL(12, 6))::DOUBLE <> penalty_pct
            THEN struct_pack(amount := NULL::DECIMAL(18, 4), rule := 'undetermined')
        WHEN coalesce(penalty_nights, 0) <= 0
            THEN
                mart.penalty_of_units(
                    (total::DECIMAL(38, 4) * 10000)::HUGEINT
                    * (try_cast(penalty_pct::VARCHAR AS DECIMAL(12, 6)) * 1000000)::HUGEINT,
                    100000000::HUGEINT,
                    'percentage'
                )
        WHEN
            try_cast(penalty_nights::VARCHAR AS DECIMAL(7, 3)) IS NULL
            OR try_cast(penalty_nights::VARCHAR AS DECIMAL(7, 3))::DOUBLE <> penalty_nights
            THEN struct_pack(amount := NULL::DECIMAL(18, 4), rule := 'undetermined')
        ELSE
            mart.penalty_of_units(
                (total::DECIMAL(38, 4) * 10000)::HUGEINT
                * (try_cast(penalty_pct::VARCHAR AS DECIMAL(12, 6)) * 1000000)::HUGEINT
                * (try_cast(penalty_nights::VARCHAR AS DECIMAL(7, 3)) * 1000)::HUGEINT,
                100000000000::HUGEINT * nights,
                'nights'
            )
    END
)
