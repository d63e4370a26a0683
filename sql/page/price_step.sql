-- One row per whole percent of change: offers on sale on both nights whose total differs by that much.
-- from_pct: change_pct, rounded down; -30 and 30 include everything beyond.
SELECT
    floor(greatest(-30, least(30, change_pct)))::BIGINT AS from_pct,
    count(*) AS offers
FROM report.price_move
WHERE is_within(property_id, market, check_in)
GROUP BY ALL
ORDER BY ALL
