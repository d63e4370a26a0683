-- One row per market: what deviates from the supplier's document.
-- drift_kinds: warning high level: kinds of deviation
SELECT
    drift.market,
    count(DISTINCT drift.path || drift.kind) AS drift_kinds,
    count(DISTINCT drift.path || drift.kind) AS drift_kinds__of
FROM sweep_files.drift AS drift
GROUP BY drift.market
