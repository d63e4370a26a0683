-- One row per match grade, source, product type and market: how its prices stand against the reference market's.
-- planned: Cells of the market asked about whose stay lies ahead.
-- answered: Cells of these that were answered when they were asked about last.
-- comparable: Cells of these with at least one pair of this grade, both seen in one sweep.
-- pairs: Offers that were compared.
-- win: Offers that are cheaper than in the reference market, beyond the tolerance.
-- meet: Offers within the tolerance.
-- lose: Offers that are dearer than in the reference market, beyond the tolerance.
-- lose_high: Offers of these with a gap of high severity.
-- parity_score: Percent of pairs that win or meet: 100 is never dearer than the reference market.
-- weighted_parity_score: The same, each pair counted with the weight of its property; NULL: all weights are 0.
-- market_weight: Weight of the market in scores over markets.
-- median_gap_pct: Median gap in percent of the reference price; above 0: dearer.
-- median_losing_snapshots: Median persistence of losing pairs: snapshots in a row; exact pairs in one currency only.
WITH property_weight AS (
    SELECT
        weighed.property_id,
        weighed.weight
    FROM mart.weight AS weighed
    WHERE weighed.property_id IS NOT NULL
),

market_weight AS (
    SELECT
        weighed.market,
        weighed.weight
    FROM mart.weight AS weighed
    WHERE weighed.market IS NOT NULL
),

scored AS (
    SELECT
        parity.match_grade,
        parity.source,
        parity.product_type,
        parity.market,
        parity.reference_market,
        count(DISTINCT parity.cell_key) AS comparable,
        count(*) AS pairs,
        count(*) FILTER (WHERE parity.verdict = 'win') AS win,
        count(*) FILTER (WHERE parity.verdict = 'meet') AS meet,
        count(*) FILTER (WHERE parity.verdict = 'lose') AS lose,
        count(*) FILTER (WHERE parity.verdict = 'lose' AND parity.severity = 'high') AS lose_high,
        -- Decimals: a sum of fractions would depend on the order of its rows, by its last bit.
        sum(coalesce(weighed.weight, 1)::DECIMAL(38, 9)) AS weights,
        sum(
            CASE WHEN parity.verdict = 'lose' THEN 0 ELSE coalesce(weighed.weight, 1)::DECIMAL(38, 9) END
        ) AS weights_kept,
        median(parity.gap_pct) AS median_gap_pct,
        median(parity.losing_snapshots) FILTER (WHERE parity.verdict = 'lose') AS median_losing_snapshots
    FROM mart.market_parity AS parity
    LEFT JOIN property_weight AS weighed ON weighed.property_id = parity.property_id
    GROUP BY parity.match_grade, parity.source, parity.product_type, parity.market, parity.reference_market
)

SELECT
    scored.match_grade,
    scored.source,
    scored.product_type,
    scored.market,
    scored.reference_market,
    coverage.planned,
    coverage.answered,
    scored.comparable,
    scored.pairs,
    scored.win,
    scored.meet,
    scored.lose,
    scored.lose_high,
    100.0 * (scored.win + scored.meet) / scored.pairs AS parity_score,
    CASE
        WHEN scored.weights > 0 THEN 100 * scored.weights_kept::DOUBLE / scored.weights::DOUBLE
    END AS weighted_parity_score,
    coalesce(market_weight.weight, 1) AS market_weight,
    scored.median_gap_pct,
    scored.median_losing_snapshots
FROM scored
LEFT JOIN mart.market_coverage AS coverage
    ON
        coverage.source = scored.source
        AND coverage.market = scored.market
        AND coverage.product_type = scored.product_type
LEFT JOIN market_weight ON market_weight.market = scored.market
