-- One row per penalty whose percentage is below 0 or above 100.
SELECT
    penalty.market,
    penalty.property_id,
    penalty.search_id,
    penalty.offer_no,
    'the penalty is ' || penalty.penalty_pct || ' %' AS reason
FROM sweep_files.penalty AS penalty
WHERE penalty.penalty_pct NOT BETWEEN 0 AND 100
