-- One row per rule, market and property whose findings differ in size from most of its market's, which are one case.
-- It has its own cause, so it keeps its own case beside the market's. `sql/staging/case_outlier_next.sql` defines how
-- far it has to deviate.
-- rule: Rule of the findings.
-- market: Market in which most properties have such findings.
-- property_id: Property that deviates.
-- size_pct: Median size of its open flags, in the unit of its rule.
-- market_pct: Median of size_pct over the properties of the market.
SELECT
    outlier.rule,
    outlier.market,
    outlier.property_id,
    outlier.size_pct,
    outlier.market_pct
FROM state.case_outlier AS outlier
