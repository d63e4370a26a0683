-- One row per penalty below 0% or above 100% of what it is a part of.
SELECT
    penalty.market,
    penalty.property_id,
    penalty.search_id,
    penalty.offer_no,
    'penalty_pct is ' || penalty.penalty_pct AS reason
FROM sweep_files.penalty AS penalty
WHERE penalty.penalty_pct NOT BETWEEN 0 AND 100
