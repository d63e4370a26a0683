-- One row per operation and market: the age of the last answers for cells whose stay is in the future.
-- cells: Number of cells ever requested whose stay is in the future.
-- answered: Of those, answered at least once.
-- fresh: Of those, answered by the latest published sweep.
-- fresh_share: fresh / cells.
-- median_age_hours: Hours from the last answer to the start of the latest published sweep, the median; NULL: none.
-- p90_age_hours: The same, for nine in ten at most.
-- oldest_age_hours: The same, the oldest.
SELECT
    cell.operation,
    cell.market,
    count(*) AS cells,
    count(cell.answered_at) AS answered,
    count(*) FILTER (WHERE cell.is_fresh) AS fresh,
    fresh::DOUBLE / cells AS fresh_share, -- noqa: RF02
    quantile_cont(cell.age_hours, 0.5) AS median_age_hours,
    quantile_cont(cell.age_hours, 0.9) AS p90_age_hours,
    max(cell.age_hours) AS oldest_age_hours
FROM mart.cell_latest AS cell
GROUP BY cell.operation, cell.market
