-- One row: offers whose total has changed since they were last seen.
SELECT
    count(*) AS offers,
    count(*) FILTER (WHERE change_pct > 0) AS rose,
    count(*) FILTER (WHERE change_pct < 0) AS fell
FROM report.price_move
WHERE is_within(property_id, market, check_in)
