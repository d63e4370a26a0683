-- One row per penalty that costs less than one of the same offer that applies earlier: cancelling later gets cheaper.
-- table: penalty
-- severity: warning
-- violators: kept, of penalties that overlap the larger one counts
-- Compared are percentages of the same number of nights only; where both have a window. Windows beyond ten years
-- stand for "at any time".
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
    WHERE penalty.window_hours < 87600 AND penalty.penalty_pct IS NOT NULL
) AS later
WHERE later.penalty_pct < later.earlier_pct
