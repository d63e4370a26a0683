-- One row per property and check-in with a floor: how close the closest floor of its list offers is to the total.
-- floors: Number of offers that state a floor.
-- above_total: Number of these with a floor at or above the total.
-- closest_pct: Highest headroom_pct, in percent of total; > 0: the floor is above the total.
SELECT
    property_id,
    check_in,
    count(*) AS floors,
    count(*) FILTER (WHERE headroom_pct >= 0) AS above_total,
    max(headroom_pct) AS closest_pct
FROM mart.floor_headroom
WHERE source = 'multi' AND headroom_pct IS NOT NULL AND is_within(property_id, market, check_in)
GROUP BY property_id, check_in
ORDER BY property_id, check_in
