-- One row per source and market: how many hotel-only offers state a floor, and its distance from the total.
-- planned: Number of requested cells whose stay is in the future.
-- answered: Number of requested cells whose latest request was answered, with or without an offer.
-- comparable: Number of cells with at least one offer on sale that states both total and floor.
-- offers: Number of hotel-only offers on sale.
-- offers_with_floor: Number of hotel-only offers on sale that state a floor above 0.
-- coverage_pct: offers_with_floor in percent of offers; NULL: no offers.
-- floor_above_total: Number of offers whose floor is above their total: they must be marked up to be sold.
-- median_headroom_pct: Median of 100 x (floor / total - 1) over offers with both; > 0: the floor is above the total.
-- highest_headroom_pct: Largest headroom, in percent: with this mark-up, every offer sells at or above its floor.
WITH counted AS (
    SELECT
        headroom.source,
        headroom.market,
        count(*) AS offers,
        count(headroom.floor) AS offers_with_floor,
        count(*) FILTER (WHERE headroom.headroom > 0) AS floor_above_total,
        count(DISTINCT headroom.cell_key) FILTER (WHERE headroom.headroom IS NOT NULL) AS comparable,
        median(headroom.headroom_pct) AS median_headroom_pct,
        max(headroom.headroom_pct) AS highest_headroom_pct
    FROM mart.floor_headroom AS headroom
    GROUP BY headroom.source, headroom.market
)

SELECT
    coverage.source,
    coverage.market,
    coverage.planned,
    coverage.answered,
    coalesce(counted.comparable, 0) AS comparable,
    coalesce(counted.offers, 0) AS offers,
    coalesce(counted.offers_with_floor, 0) AS offers_with_floor,
    100.0 * counted.offers_with_floor / counted.offers AS coverage_pct,
    coalesce(counted.floor_above_total, 0) AS floor_above_total,
    counted.median_headroom_pct,
    counted.highest_headroom_pct
FROM mart.market_coverage AS coverage
LEFT JOIN counted ON counted.source = coverage.source AND counted.market = coverage.market
WHERE coverage.product_type = 'Hotel'
