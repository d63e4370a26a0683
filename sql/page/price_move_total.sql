-- One row: offers whose total has changed since they were last seen, and the median of their changes.
-- median_pct: Median change, in percent of the total before; NULL: no total has changed.
SELECT
    count(*) AS offers,
    count(*) FILTER (WHERE change_pct > 0) AS rose,
    count(*) FILTER (WHERE change_pct < 0) AS fell,
    median(change_pct) AS median_pct
FROM report.price_move
WHERE is_within(property_id, market, check_in)
