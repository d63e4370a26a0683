-- One row per penalty that costs less than one of the same offer that applies earlier: cancelling later gets cheaper.
-- Only percentages of the same number of nights are compared, where both have a window. Windows beyond ten years mean
-- "at any time".
-- Only offers that can break the rule are sorted: those whose shortest window does not cost the most, or with more than
-- two steps.
SELECT
    later.market,
    later.property_id,
    later.search_id,
    later.offer_no,
    later.penalty_pct || ' % within ' || later.window_hours || ' h, but ' || later.earlier_pct || ' % earlier' AS reason
FROM (
    SELECT
        penalty.market,
        penalty.property_id,
        penalty.search_id,
        penalty.offer_no,
        penalty.penalty_pct,
        penalty.window_hours,
        max(penalty.penalty_pct) OVER (
            PARTITION BY penalty.search_id, penalty.offer_no, coalesce(penalty.penalty_nights, 0)
            ORDER BY penalty.window_hours DESC
            GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS earlier_pct
    FROM sweep_files.penalty AS penalty
    SEMI JOIN (
        SELECT
            step.search_id,
            step.offer_no
        FROM sweep_files.penalty AS step
        WHERE step.window_hours < 87600 AND step.penalty_pct IS NOT NULL
        GROUP BY step.search_id, step.offer_no
        HAVING count(*) > 2 OR arg_min(step.penalty_pct, step.window_hours) < max(step.penalty_pct)
    ) AS suspect ON suspect.search_id = penalty.search_id AND suspect.offer_no = penalty.offer_no
    WHERE penalty.window_hours < 87600 AND penalty.penalty_pct IS NOT NULL
) AS later
WHERE later.penalty_pct < later.earlier_pct
