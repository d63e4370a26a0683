-- One row per match grade, source, market, product type, currency, basis and property: how its prices compare.
-- comparable: Cells of the property with a pair.
-- pairs: Offers compared with one of the reference market.
-- win: Pairs cheaper than in the reference market.
-- meet: Pairs that meet, within the tolerance.
-- lose: Pairs dearer than in the reference market.
-- lose_high: Losing pairs of high severity.
-- parity_score: 100 * (win + meet) / pairs.
SELECT
    parity.match_grade,
    parity.source,
    parity.market,
    parity.product_type,
    parity.currency,
    parity.currency_basis,
    parity.property_id,
    count(DISTINCT parity.cell_key) AS comparable,
    count(*) AS pairs,
    count(*) FILTER (WHERE parity.verdict = 'win') AS win,
    count(*) FILTER (WHERE parity.verdict = 'meet') AS meet,
    count(*) FILTER (WHERE parity.verdict = 'lose') AS lose,
    count(*) FILTER (WHERE parity.verdict = 'lose' AND parity.severity = 'high') AS lose_high,
    100.0 * count(*) FILTER (WHERE parity.verdict <> 'lose') / count(*) AS parity_score
FROM mart.market_parity AS parity
GROUP BY ALL
