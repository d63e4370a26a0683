-- One row per market: what deviates from the supplier's document.
SELECT
    drift.market,
    count(DISTINCT drift.path || drift.kind) AS drift_kinds,
    count(DISTINCT drift.path || drift.kind) AS drift_kinds__of
FROM sweep_files.drift AS drift
GROUP BY drift.market
