-- One row per match grade, source, market, product type, currency, basis and property: how its prices compare.
-- comparable: Number of cells of the property with at least one pair.
-- pairs: Number of its offers compared with an offer of the reference market.
-- win: Number of pairs cheaper than in the reference market.
-- meet: Number of pairs equal within the tolerance.
-- lose: Number of pairs dearer than in the reference market.
-- lose_high: Number of losing pairs of high severity.
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
