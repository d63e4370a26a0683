-- One row per property, market, check-in and currency: its exact pairs of list answers, each offer once.
-- pairs: Number of pairs of an offer and the same offer in the reference market; win, meet, lose: by verdict.
-- median_gap_pct: Median gap in percent of the reference price; > 0: dearer.
SELECT
    property_id,
    market,
    reference_market,
    check_in,
    currency,
    count(*) AS pairs,
    count(*) FILTER (WHERE verdict = 'win') AS win,
    count(*) FILTER (WHERE verdict = 'meet') AS meet,
    count(*) FILTER (WHERE verdict = 'lose') AS lose,
    median(gap_pct) AS median_gap_pct
FROM mart.market_parity
WHERE
    match_grade = 'exact'
    AND source = 'multi'
    AND currency_basis <> 'supplier_rate'
    AND is_within(property_id, market, check_in)
GROUP BY ALL
ORDER BY ALL
