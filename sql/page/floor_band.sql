-- One row per market and whole percent of headroom: number of list offers with that headroom.
-- from_pct: headroom_pct, rounded down; -30 and 30 include everything beyond.
SELECT
    market,
    greatest(-30, least(30, floor(headroom_pct)))::INTEGER AS from_pct,
    count(*) AS offers
FROM mart.floor_headroom
WHERE source = 'multi' AND headroom_pct IS NOT NULL AND is_within(property_id, market, check_in)
GROUP BY ALL
ORDER BY ALL
