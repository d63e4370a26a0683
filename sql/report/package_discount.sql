-- One row per source and market: how much cheaper the same offer is in a package, and where that is below the floor.
-- planned: Number of requested package cells whose stay is in the future.
-- answered: Number of requested cells whose latest request was answered.
-- comparable: Number of hotel-only cells with at least one offer whose package twin was seen in the same sweep.
-- pairs: Number of offers that were compared.
-- median_discount_pct: Median of 100 x (1 - package total / hotel total); < 0: dearer in a package.
-- highest_discount_pct: Largest discount, in percent.
-- dearer_in_package: Number of offers that cost more inside a package.
-- with_floor: Number of compared offers that state a hotel-only floor: only these can leak.
-- exposed: Number of compared offers whose package total is below the hotel-only floor by more than the tolerance.
-- exposed_pct: exposed in percent of with_floor; NULL: no floor is stated.
-- median_leak_pct: Median distance of exposed package totals below the floor, in percent of the floor; > 0.
WITH judged AS (
    SELECT
        pair.*,
        pair.leak > mart.tolerance(pair.hotel_floor, analysis.tolerance_pct, unit.minor_unit) AS is_exposed
    FROM mart.package_discount AS pair
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN ref.currency AS unit ON unit.currency = pair.currency
),

paired AS (
    SELECT
        pair.source,
        pair.market,
        count(DISTINCT pair.cell_key) AS comparable,
        count(*) AS pairs,
        median(pair.discount_pct) AS median_discount_pct,
        max(pair.discount_pct) AS highest_discount_pct,
        count(*) FILTER (WHERE pair.discount < 0) AS dearer_in_package,
        count(pair.hotel_floor) AS with_floor,
        count(*) FILTER (WHERE pair.is_exposed) AS exposed,
        median(pair.leak_pct) FILTER (WHERE pair.is_exposed) AS median_leak_pct
    FROM judged AS pair
    GROUP BY pair.source, pair.market
)

SELECT
    coverage.source,
    coverage.market,
    coverage.planned,
    coverage.answered,
    coalesce(paired.comparable, 0) AS comparable,
    coalesce(paired.pairs, 0) AS pairs,
    paired.median_discount_pct,
    paired.highest_discount_pct,
    coalesce(paired.dearer_in_package, 0) AS dearer_in_package,
    coalesce(paired.with_floor, 0) AS with_floor,
    coalesce(paired.exposed, 0) AS exposed,
    CASE WHEN paired.with_floor > 0 THEN 100.0 * paired.exposed / paired.with_floor END AS exposed_pct,
    paired.median_leak_pct
FROM mart.market_coverage AS coverage
LEFT JOIN paired ON paired.source = coverage.source AND paired.market = coverage.market
WHERE coverage.product_type = 'Package'
