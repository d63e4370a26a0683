-- One row per market and property with cancellation penalties: how many there are, and what they add up to.
SELECT
    penalty.market,
    penalty.property_id,
    count(*) AS penalties,
    count(penalty.penalty_pct) AS stated,
    fsum(penalty.penalty_pct) AS pct
FROM sweep_files.penalty AS penalty
GROUP BY penalty.market, penalty.property_id
