-- One row per source, market, match grade and currency basis: how many selling prices respect the floor.
-- A price converted at a reference rate has a larger tolerance, so never add up the rows of two bases.
-- planned: Number of selling prices of hotel-only stays that are still ahead, each with its latest value.
-- answered: Number of selling prices with at least one matching offer on sale.
-- comparable: Number of selling prices that could be compared with a floor: kept or breach.
-- kept: Number of prices at or above the floor, within the tolerance; if it moved around the price, above both floors.
-- breaches: Number of prices below the floor by more than the tolerance; if it moved around the price, below both.
-- without_floor: Number of prices that may be of an offer without a floor: never counted as kept.
-- not_comparable: Number of prices that are outdated, between two floors, before the first answer, or without a rate.
-- breach_pct: breaches in percent of comparable; NULL: none is comparable.
-- median_below_pct: Median distance of breaches below the floor, in percent of the floor; > 0.
SELECT
    held.source,
    held.market,
    held.match_grade,
    count(*) AS planned,
    count(*) FILTER (WHERE held.offers > 0) AS answered,
    count(*) FILTER (WHERE held.verdict IN ('kept', 'breach')) AS comparable,
    count(*) FILTER (WHERE held.verdict = 'kept') AS kept,
    count(*) FILTER (WHERE held.verdict = 'breach') AS breaches,
    count(*) FILTER (WHERE held.verdict = 'none_stated') AS without_floor,
    count(*) FILTER (
        WHERE held.verdict IN ('outdated', 'between_floors', 'before_answers', 'no_rate')
    ) AS not_comparable,
    CASE WHEN comparable > 0 THEN 100.0 * breaches / comparable END AS breach_pct,
    median(held.below_floor_pct) FILTER (WHERE held.verdict = 'breach') AS median_below_pct,
    held.currency_basis
FROM mart.price_against_floor AS held
WHERE
    held.product_type = 'Hotel'
    AND held.verdict <> 'stay_began'
GROUP BY held.source, held.market, held.match_grade, held.currency_basis
