-- One row per rule, market and property whose finding is of another size than most of its market's, which is one case.
-- It has a cause of its own, and stays a case beside the market's. Where more than a fifth of the properties deviate,
-- the market has no one size that they could deviate from, and all are parts of its case.
-- rule: Rule of the findings.
-- market: Market whose properties mostly have them.
-- property_id: Property that deviates from them, by more than disparity_pct and tolerance_pct together.
-- size_pct: Median size of its open flags, in percent.
-- market_pct: Median of the same over the properties of the market.
WITH in_property AS (
    SELECT
        flag.rule,
        flag.market,
        flag.property_id,
        median(flag.size_pct) AS size_pct
    FROM state.flag_open AS flag
    SEMI JOIN state.case_scope AS scope
        ON
            scope.rule = flag.rule
            AND coalesce(scope.market, flag.market) = flag.market
            AND scope.ended_at IS NULL
    WHERE
        flag.size_pct IS NOT NULL
        -- A mark-up is never a case of a property.
        AND flag.rule <> 'fx_markup'
    GROUP BY flag.rule, flag.market, flag.property_id
),

compared AS (
    SELECT
        in_property.*,
        median(in_property.size_pct) OVER of_market AS market_pct,
        count(*) OVER of_market AS properties
    FROM in_property
    WINDOW of_market AS (PARTITION BY in_property.rule, in_property.market)
)

SELECT
    compared.rule,
    compared.market,
    compared.property_id,
    compared.size_pct,
    compared.market_pct
FROM compared
CROSS JOIN ref.analysis AS analysis
WHERE
    abs(compared.size_pct - compared.market_pct)
    > (analysis.disparity_pct + analysis.tolerance_pct) * (1 + compared.market_pct / 100)
QUALIFY 5 * count(*) OVER (PARTITION BY compared.rule, compared.market) <= compared.properties
