-- One row per property and check-in: its exact pairs of list answers, each offer once; the market that differs most.
-- Of a property with pairs in one currency, those at the reference rate are left out: their gaps contain that rate's.
-- pairs: Number of pairs of an offer and the same offer in the reference market.
-- lose: Number of these that are dearer than in the reference market.
-- market: Market whose median gap is furthest from 0.
-- median_gap_pct: Median gap of that market, in percent of the reference price; > 0: dearer.
WITH by_market AS (
    SELECT
        property_id,
        check_in,
        market,
        currency_basis,
        count(*) AS pairs,
        count(*) FILTER (WHERE verdict = 'lose') AS lose,
        median(gap_pct) AS median_gap_pct
    FROM mart.market_parity
    WHERE
        match_grade = 'exact'
        AND source = 'multi'
        -- At the supplier's own rate, an offer was compared in its other answered currency.
        AND currency_basis <> 'supplier_rate'
        AND is_within(property_id, market, check_in)
    GROUP BY property_id, check_in, market, currency_basis
    QUALIFY mart.rank_of_basis(currency_basis) = min(mart.rank_of_basis(currency_basis)) OVER (PARTITION BY property_id)
)

SELECT
    property_id,
    check_in,
    sum(pairs)::BIGINT AS pairs,
    sum(lose)::BIGINT AS lose,
    first(market ORDER BY abs(median_gap_pct) DESC, market) AS market,
    first(median_gap_pct ORDER BY abs(median_gap_pct) DESC, market) AS median_gap_pct
FROM by_market
GROUP BY property_id, check_in
ORDER BY property_id, check_in
