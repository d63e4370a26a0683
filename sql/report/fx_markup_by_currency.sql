-- One row per source, market and pair of currencies: the supplier's mark-up on the reference rate.
-- planned: Number of requested cells of the market whose stay is in the future, in every currency.
-- answered: Number of requested cells whose latest request was answered.
-- comparable: Number of cells in currency with at least one offer also seen in base_currency in the same sweep.
-- pairs: Number of offers that were compared.
-- beyond_rounding: Number of pairs whose mark-up is larger than rounding of their totals explains.
-- median_markup_pct: Median mark-up of all pairs on the reference rate, in percent.
-- lowest_markup_pct: Smallest mark-up of all pairs, in percent.
-- highest_markup_pct: Largest mark-up of those beyond rounding, in percent; NULL: there is none.
WITH asked AS (
    SELECT
        coverage.source,
        coverage.market,
        sum(coverage.planned)::BIGINT AS planned,
        sum(coverage.answered)::BIGINT AS answered
    FROM mart.market_coverage AS coverage
    GROUP BY coverage.source, coverage.market
)

SELECT
    pair.source,
    pair.market,
    pair.base_currency,
    pair.currency,
    any_value(asked.planned) AS planned,
    any_value(asked.answered) AS answered,
    count(DISTINCT pair.cell_key) AS comparable,
    count(*) AS pairs,
    count(*) FILTER (WHERE abs(pair.markup) > pair.rounding) AS beyond_rounding,
    median(pair.markup_pct) AS median_markup_pct,
    min(pair.markup_pct) AS lowest_markup_pct,
    max(pair.markup_pct) FILTER (WHERE abs(pair.markup) > pair.rounding) AS highest_markup_pct
FROM mart.fx_markup AS pair
LEFT JOIN asked ON asked.source = pair.source AND asked.market = pair.market
GROUP BY pair.source, pair.market, pair.base_currency, pair.currency
