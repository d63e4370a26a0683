-- One row per rule, market and property whose findings differ in size from most of its market's, after this sweep.
-- It deviates by more than disparity_pct and the tolerance, and three times as far as the closest four fifths of the
-- market's properties do, because properties that differ among each other have no common size. Once it has its own
-- case, half that distance keeps it; otherwise a property near the bound would switch cases from night to night.
-- A mark-up is always a case of its market. By the currency that a property is priced in, the same one is above or
-- below the reference rate: only its size counts. One that a rate of the last 31 days explains is the supplier's rate:
-- it differs from the others by the currency that the property is priced in.
WITH in_property AS (
    SELECT
        flag.rule,
        flag.market,
        flag.property_id,
        median(flag.size_pct) AS size_pct,
        -- A mark-up compares two prices of the supplier: its rates add nothing.
        bool_or(flag.fx IS NOT NULL AND flag.rule <> 'fx_markup') AS is_converted,
        median(CASE WHEN flag.rule = 'fx_markup' THEN abs(flag.size_pct) ELSE flag.size_pct END) AS compared_pct
    FROM state.flag_open AS flag
    ANTI JOIN report.late_markup AS late
        ON
            late.flag_id = flag.flag_id
            AND late.first_flagged_at = flag.first_flagged_at
    WHERE
        flag.size_pct IS NOT NULL
        AND (
            flag.rule = 'fx_markup'
            OR EXISTS (
                FROM state.case_scope AS scope
                WHERE
                    scope.rule = flag.rule
                    AND scope.market = flag.market
                    AND scope.ended_at IS NULL
            )
        )
    GROUP BY flag.rule, flag.market, flag.property_id
),

of_market AS (
    SELECT
        in_property.*,
        median(in_property.size_pct) OVER (PARTITION BY in_property.rule, in_property.market) AS market_pct,
        abs(
            in_property.compared_pct
            - median(in_property.compared_pct) OVER (PARTITION BY in_property.rule, in_property.market)
        ) AS deviation
    FROM in_property
),

spread AS (
    SELECT
        of_market.*,
        quantile_disc(of_market.deviation, 0.8) OVER (PARTITION BY of_market.rule, of_market.market)
            AS usual_deviation
    FROM of_market
)

SELECT
    spread.rule,
    spread.market,
    spread.property_id,
    spread.size_pct,
    spread.market_pct
FROM spread
CROSS JOIN ref.analysis AS analysis
LEFT JOIN state.case_outlier AS before
    ON
        before.rule = spread.rule
        AND before.market = spread.market
        AND before.property_id = spread.property_id
WHERE
    CASE WHEN before.rule IS NULL THEN 1 ELSE 2 END * spread.deviation > greatest(
        3 * spread.usual_deviation,
        (1 + spread.market_pct / 100) * (
            analysis.disparity_pct + analysis.tolerance_pct
            -- Rates differ by the currency that a property is priced in.
            + CASE WHEN spread.is_converted THEN analysis.reference_rate_pct ELSE 0 END
        )
    )
