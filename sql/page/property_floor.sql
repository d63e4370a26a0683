-- One row per property, stay, market and currency: its list offers, and how close floors are to totals.
-- with_floor: Number of offers that state a floor.
-- cheapest: Lowest total, in currency.
-- closest_pct: Highest headroom_pct; > 0: the floor is above the total.
-- above_total: Number of offers with a floor at or above the total.
SELECT
    property_id,
    check_in,
    nights,
    market,
    currency,
    count(*) AS offers,
    count(floor) AS with_floor,
    min(total) AS cheapest,
    max(headroom_pct) AS closest_pct,
    count(*) FILTER (WHERE headroom_pct >= 0) AS above_total
FROM mart.floor_headroom
WHERE source = 'multi' AND is_within(property_id, market, check_in)
GROUP BY ALL
ORDER BY ALL
