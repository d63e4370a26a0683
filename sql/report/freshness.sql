-- One row per operation and market: the age of the last answers for cells whose stay is in the future.
-- cells: Number of cells ever requested whose stay is in the future.
-- answered: Number of cells that were answered at least once.
-- fresh: Number of cells that the latest published sweep answered.
-- fresh_share: fresh / cells.
-- median_age_hours: Median age of the last answers, in hours before the start of the latest sweep; NULL: no answer.
-- p90_age_hours: 90th percentile of that age, in hours.
-- oldest_age_hours: Largest age, in hours.
SELECT
    cell.operation,
    cell.market,
    count(*) AS cells,
    count(cell.answered_at) AS answered,
    count(*) FILTER (WHERE cell.is_fresh) AS fresh,
    fresh::DOUBLE / cells AS fresh_share,
    quantile_cont(cell.age_hours, 0.5) AS median_age_hours,
    quantile_cont(cell.age_hours, 0.9) AS p90_age_hours,
    max(cell.age_hours) AS oldest_age_hours
FROM mart.cell_latest AS cell
GROUP BY cell.operation, cell.market
