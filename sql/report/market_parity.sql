-- One row per match grade, source, product type, market, currency and basis: prices compared with the reference market.
-- Scores on different bases are never added up. The single score of a market uses the most reliable basis: offers
-- compared in one currency where there are any, else those at the supplier's own rate, else at the reference rate.
-- currency: ISO 4217 code of the market's prices; NULL: nothing was comparable.
-- currency_basis: `same`, `supplier_rate` or `reference_rate`, as in mart.market_parity; NULL: nothing was comparable.
-- planned: Number of requested cells of the market whose stay is in the future, in every currency.
-- answered: Number of requested cells whose latest request was answered.
-- comparable: Number of answered cells with a pair of this grade, currency and basis, both seen in one sweep.
-- pairs: Number of offers that were compared.
-- properties: Number of properties with compared offers.
-- win: Number of offers cheaper than in the reference market, beyond the tolerance.
-- meet: Number of offers within the tolerance.
-- lose: Number of offers dearer than in the reference market, beyond the tolerance.
-- lose_high: Number of dearer offers with a gap of high severity.
-- parity_score: 100 x (win + meet) / pairs; 100: never dearer than the reference market.
-- property_score: Mean over properties of their own parity_score, so that each property counts the same.
-- weighted_parity_score: parity_score with each pair weighted by its property; NULL: all weights are 0.
-- is_counted: TRUE: this row is part of market_score.
-- market_score: parity_score over all counted rows of the market, weighted by pairs; the same in each of them.
-- market_score_of: How market_score is combined, in words.
-- market_weight: Weight of the market in scores over markets.
-- median_gap_pct: Median gap in percent of the reference price; > 0: dearer.
-- median_losing_snapshots: Median, over losing pairs, of consecutive snapshots in which they were dearer on this basis.
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
        held.match_grade,
        held.source,
        held.product_type,
        held.market,
        held.currency,
        held.currency_basis,
        sum(held.comparable)::BIGINT AS comparable,
        sum(held.pairs)::BIGINT AS pairs,
        sum(held.win)::BIGINT AS win,
        sum(held.meet)::BIGINT AS meet,
        sum(held.lose)::BIGINT AS lose,
        sum(held.lose_high)::BIGINT AS lose_high,
        count(*) AS properties,
        -- Decimals: the last bit of a sum or mean of fractions depends on the order of its rows.
        (sum(held.parity_score::DECIMAL(38, 9)) / count(*))::DOUBLE AS property_score,
        sum(coalesce(weighed.weight, 1)::DECIMAL(38, 9) * held.pairs) AS weights,
        sum(coalesce(weighed.weight, 1)::DECIMAL(38, 9) * (held.pairs - held.lose)) AS weights_kept
    FROM mart.property_parity AS held
    LEFT JOIN property_weight AS weighed ON weighed.property_id = held.property_id
    GROUP BY
        held.match_grade, held.source, held.product_type, held.market, held.currency, held.currency_basis
),

ranked AS (
    SELECT
        scored.*,
        mart.rank_of_basis(scored.currency_basis) AS rank_of_basis,
        rank_of_basis = min(rank_of_basis) OVER (
            PARTITION BY scored.match_grade, scored.source, scored.product_type, scored.market
        ) AS is_counted
    FROM scored
),

counted AS (
    SELECT
        ranked.match_grade,
        ranked.source,
        ranked.product_type,
        ranked.market,
        100.0 * sum(ranked.win + ranked.meet) FILTER (WHERE ranked.is_counted)
        / sum(ranked.pairs) FILTER (WHERE ranked.is_counted) AS market_score,
        format(
            'Pairs {}, {}{}.',
            CASE min(ranked.rank_of_basis)
                WHEN 1 THEN 'in one currency'
                WHEN 2 THEN 'at the supplier''s own rate'
                ELSE 'at the reference rate'
            END,
            string_agg(ranked.currency, ' and ' ORDER BY ranked.currency) FILTER (WHERE ranked.is_counted),
            CASE
                WHEN bool_and(ranked.is_counted) THEN ''
                ELSE
                    format(
                        '; {} on another basis are left out', sum(ranked.pairs) FILTER (WHERE NOT ranked.is_counted)
                    )
            END
        ) AS market_score_of
    FROM ranked
    GROUP BY ranked.match_grade, ranked.source, ranked.product_type, ranked.market
)

-- AM07 counts the columns of a star as one.
SELECT -- noqa: AM07
    ranked.match_grade,
    ranked.source,
    ranked.product_type,
    ranked.market,
    middle.reference_market,
    ranked.currency,
    ranked.currency_basis,
    coverage.planned,
    coverage.answered,
    ranked.comparable,
    ranked.pairs,
    ranked.properties,
    ranked.win,
    ranked.meet,
    ranked.lose,
    ranked.lose_high,
    100.0 * (ranked.win + ranked.meet) / ranked.pairs AS parity_score,
    ranked.property_score,
    CASE
        WHEN ranked.weights > 0 THEN 100 * ranked.weights_kept::DOUBLE / ranked.weights::DOUBLE
    END AS weighted_parity_score,
    ranked.is_counted,
    counted.market_score,
    counted.market_score_of,
    coalesce(market_weight.weight, 1) AS market_weight,
    middle.median_gap_pct,
    middle.median_losing_snapshots
FROM ranked
LEFT JOIN mart.market_coverage AS coverage
    ON
        coverage.source = ranked.source
        AND coverage.market = ranked.market
        AND coverage.product_type = ranked.product_type
INNER JOIN mart.parity_median AS middle
    ON
        middle.match_grade = ranked.match_grade
        AND middle.source = ranked.source
        AND middle.product_type = ranked.product_type
        AND middle.market = ranked.market
        AND middle.currency = ranked.currency
        AND middle.currency_basis = ranked.currency_basis
INNER JOIN counted
    ON
        counted.match_grade = ranked.match_grade
        AND counted.source = ranked.source
        AND counted.product_type = ranked.product_type
        AND counted.market = ranked.market
LEFT JOIN market_weight ON market_weight.market = ranked.market

UNION ALL BY NAME

-- A requested market that is not comparable has a row too, so that it does not vanish.
SELECT
    'exact' AS match_grade,
    coverage.source,
    coverage.product_type,
    coverage.market,
    chosen.reference_market,
    coverage.planned,
    coverage.answered,
    0 AS comparable,
    0 AS pairs,
    0 AS properties,
    0 AS win,
    0 AS meet,
    0 AS lose,
    0 AS lose_high,
    FALSE AS is_counted,
    'No pair was comparable.' AS market_score_of,
    coalesce(market_weight.weight, 1) AS market_weight
FROM mart.market_coverage AS coverage
INNER JOIN mart.reference_market AS chosen ON chosen.reference_market <> coverage.market
LEFT JOIN market_weight ON market_weight.market = coverage.market
ANTI JOIN scored
    ON
        scored.match_grade = 'exact'
        AND scored.source = coverage.source
        AND scored.product_type = coverage.product_type
        AND scored.market = coverage.market
