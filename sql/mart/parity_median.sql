-- One row per match grade, source, market, product type, currency and basis: median gap, and how long losing lasts.
-- reference_market: The market that the others are compared with.
-- median_gap_pct: Median gap in percent of the reference price; > 0: dearer.
-- median_losing_snapshots: Median, over losing pairs, of consecutive snapshots in which they were dearer on this basis.
-- The gaps of a large night do not fit into memory. First find the tenth of a percent that contains the median,
-- then the median among the few gaps in that tenth.
WITH tenth AS (
    SELECT
        parity.match_grade,
        parity.source,
        parity.market,
        parity.product_type,
        parity.currency,
        parity.currency_basis,
        floor(10 * parity.gap_pct) AS tenth,
        any_value(parity.reference_market) AS reference_market,
        count(*) AS times
    FROM mart.market_parity AS parity
    GROUP BY ALL
),

tenth_placed AS (
    SELECT
        tenth.*,
        sum(tenth.times) OVER (series ORDER BY tenth.tenth) AS up_to,
        sum(tenth.times) OVER series AS of_all
    FROM tenth
    WINDOW series AS (
        PARTITION BY
            tenth.match_grade, tenth.source, tenth.market, tenth.product_type, tenth.currency, tenth.currency_basis
    )
),

-- With an even number of gaps, the two in the middle may fall into different tenths.
tenth_in_middle AS (
    SELECT placed.*
    FROM tenth_placed AS placed
    WHERE
        2 * placed.up_to >= placed.of_all
        AND 2 * (placed.up_to - placed.times) <= placed.of_all
),

gap AS (
    SELECT
        parity.match_grade,
        parity.source,
        parity.market,
        parity.product_type,
        parity.currency,
        parity.currency_basis,
        parity.gap_pct,
        any_value(held.reference_market) AS reference_market,
        any_value(held.of_all) AS of_all,
        any_value(held.up_to - held.times) AS before_tenth,
        count(*) AS times
    FROM mart.market_parity AS parity
    INNER JOIN tenth_in_middle AS held
        ON
            held.match_grade = parity.match_grade
            AND held.source = parity.source
            AND held.market = parity.market
            AND held.product_type = parity.product_type
            AND held.currency = parity.currency
            AND held.currency_basis = parity.currency_basis
            AND held.tenth = floor(10 * parity.gap_pct)
    GROUP BY ALL
),

gap_placed AS (
    SELECT
        gap.*,
        min(gap.before_tenth) OVER series + sum(gap.times) OVER (series ORDER BY gap.gap_pct) AS up_to
    FROM gap
    WINDOW series AS (
        PARTITION BY gap.match_grade, gap.source, gap.market, gap.product_type, gap.currency, gap.currency_basis
    )
),

losing AS (
    SELECT
        parity.match_grade,
        parity.source,
        parity.market,
        parity.product_type,
        parity.currency,
        parity.currency_basis,
        median(parity.losing_snapshots) AS median_losing_snapshots
    FROM mart.market_parity AS parity
    WHERE parity.verdict = 'lose'
    GROUP BY ALL
)

SELECT
    placed.match_grade,
    placed.source,
    placed.market,
    placed.product_type,
    placed.currency,
    placed.currency_basis,
    any_value(placed.reference_market) AS reference_market,
    (
        min(placed.gap_pct) FILTER (WHERE 2 * placed.up_to >= placed.of_all)
        + min(placed.gap_pct) FILTER (WHERE 2 * placed.up_to > placed.of_all)
    ) / 2 AS median_gap_pct,
    any_value(losing.median_losing_snapshots) AS median_losing_snapshots
FROM gap_placed AS placed
LEFT JOIN losing
    ON
        losing.match_grade = placed.match_grade
        AND losing.source = placed.source
        AND losing.market = placed.market
        AND losing.product_type = placed.product_type
        AND losing.currency = placed.currency
        AND losing.currency_basis = placed.currency_basis
GROUP BY ALL
