-- One row: offers on sale on both nights whose total differs.
SELECT
    count(*) AS offers,
    count(*) FILTER (WHERE change_pct > 0) AS rose,
    count(*) FILTER (WHERE change_pct < 0) AS fell
FROM report.price_move
WHERE is_within(property_id, market, check_in)
