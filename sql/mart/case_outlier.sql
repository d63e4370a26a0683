-- One row per rule, market and property whose finding is of another size than most of its market's, which is one case.
-- It has a cause of its own, and stays a case beside the market's. `case_outlier_next` of `staging` says how far it
-- deviates.
-- rule: Rule of the findings.
-- market: Market whose properties mostly have them.
-- property_id: Property that deviates.
-- size_pct: Median size of its open flags, in percent.
-- market_pct: Median of the same over the properties of the market.
SELECT
    outlier.rule,
    outlier.market,
    outlier.property_id,
    outlier.size_pct,
    outlier.market_pct
FROM state.case_outlier AS outlier
