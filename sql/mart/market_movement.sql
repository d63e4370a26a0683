-- One row per source, market, product type, currency and sweep: how far its prices had moved by then, as logarithms.
-- started_at: Start of the sweep.
-- so_far: Sum of the median changes up to the sweep.
-- risen: Sum of the rises that these movements explain, up to the sweep.
-- spread: Start of the sweep; sums up to it of mean changes, of the rises they explain, and of the net share that rose.
-- highest_since: Highest value of risen from the sweep on.
-- spread_at_highest: Value of spread at the first sweep, from this one on, with the highest spread.rise.
-- spread_before: Value of spread at the first sweep of the seven days up to this one.
-- When a supplier follows an exchange rate, prices in one currency of a market move, and those in the other do not.
-- From sweep to sweep, a market moves by the median change of the offers seen again without a promotion at either end;
-- if there are none, of all offers seen again. If it moves by more than tolerance_pct, the movement explains a rise by
-- the upper quartile of at least ten changes, plus half of the distance between their quartiles.
-- Prices that rise on different nights do not move the median of any. So a rise is also explained by the sum of mean
-- changes, once more than half of the market has risen, net of what fell: by what each of these rose on average, or by
-- all that they rose if they did so more than once. The larger of the two explanations counts.
WITH counted AS (
    SELECT
        change.*,
        sum(change.pairs) OVER (
            PARTITION BY change.sweep_id, change.source, change.market, change.product_type, change.currency
            ORDER BY change.change_step
        ) AS pairs_so_far,
        sum(change.pairs) OVER (
            PARTITION BY change.sweep_id, change.source, change.market, change.product_type, change.currency
        ) AS pairs_in_all,
        coalesce(sum(change.pairs) FILTER (WHERE change.change_step > 0) OVER (
            PARTITION BY change.sweep_id, change.source, change.market, change.product_type, change.currency
        ), 0) AS raised_in_all,
        coalesce(sum(change.pairs) FILTER (WHERE change.change_step < 0) OVER (
            PARTITION BY change.sweep_id, change.source, change.market, change.product_type, change.currency
        ), 0) AS lowered_in_all,
        -- One that rises to ten times its price says no more of its market than one that rises by half.
        greatest(least(change.drift / change.pairs, ln(1.5)), -ln(1.5))::DECIMAL(18, 9) AS capped_change
    FROM (
        SELECT *
        FROM state.price_change
        -- The start or end of a promotion is not a movement of the market, but there may be nothing else to go by.
        QUALIFY is_plain = bool_or(is_plain) OVER (PARTITION BY sweep_id, source, market, product_type, currency)
    ) AS change
),

market AS (
    SELECT DISTINCT
        change.source,
        change.market,
        change.product_type,
        change.currency
    FROM state.price_change AS change
),

of_sweep AS (
    SELECT
        counted.sweep_id,
        counted.source,
        counted.market,
        counted.product_type,
        counted.currency,
        -- The step that contains the median change, represented by the mean of its changes.
        arg_min(
            counted.drift::DECIMAL(38, 9) / counted.pairs, counted.change_step
        ) FILTER (WHERE 2 * counted.pairs_so_far >= counted.pairs_in_all) AS change,
        arg_min(
            counted.drift::DECIMAL(38, 9) / counted.pairs, counted.change_step
        ) FILTER (WHERE 4 * counted.pairs_so_far >= 3 * counted.pairs_in_all) AS upper_change,
        arg_min(
            counted.drift::DECIMAL(38, 9) / counted.pairs, counted.change_step
        ) FILTER (WHERE 4 * counted.pairs_so_far >= counted.pairs_in_all) AS lower_change,
        any_value(counted.pairs_in_all) AS pairs_in_all,
        any_value(counted.raised_in_all) AS raised,
        any_value(counted.lowered_in_all) AS lowered,
        -- Quartiles of the rises alone.
        arg_min(counted.capped_change, counted.change_step) FILTER (
            WHERE
            counted.change_step > 0
            AND 4 * (counted.pairs_so_far - counted.pairs_in_all) >= -counted.raised_in_all
        ) AS upper_rise,
        arg_min(counted.capped_change, counted.change_step) FILTER (
            WHERE
            counted.change_step > 0
            AND 4 * (counted.pairs_so_far - counted.pairs_in_all) >= -3 * counted.raised_in_all
        ) AS lower_rise,
        sum(counted.pairs * counted.capped_change) / any_value(counted.pairs_in_all) AS mean_change,
        coalesce(
            sum(counted.pairs * counted.capped_change) FILTER (WHERE counted.change_step <= 0), 0
        ) / any_value(counted.pairs_in_all) AS mean_fall
    FROM counted
    GROUP BY counted.sweep_id, counted.source, counted.market, counted.product_type, counted.currency
),

-- Not all prices move alike. For each sweep in which the market moved, `rise` is the upper quartile and half of the
-- distance from the lower one, because a few properties with promotions may have risen by more than most of the others.
-- Wider bounds would take moves that properties make on their own for the market's. Of fewer than ten prices, one that
-- moves on its own would count for all. The same holds for the rises of a sweep in which few prices fell.
stepped AS (
    SELECT
        market.source,
        market.market,
        market.product_type,
        market.currency,
        sweep.started_at,
        coalesce(of_sweep.change, 0) AS change,
        CASE
            WHEN
                abs(of_sweep.change::DOUBLE) > ln(1 + analysis.tolerance_pct / 100)
                AND of_sweep.pairs_in_all >= 10
                THEN of_sweep.upper_change + (of_sweep.upper_change - of_sweep.lower_change) / 2
            ELSE coalesce(of_sweep.change, 0)
        END AS rise,
        coalesce(of_sweep.mean_change, 0)::DECIMAL(38, 9) AS mean_change,
        CASE
            WHEN of_sweep.raised > 0 AND of_sweep.raised >= 3 * of_sweep.lowered AND of_sweep.pairs_in_all >= 10
                THEN
                    of_sweep.mean_fall
                    + of_sweep.raised * (of_sweep.upper_rise + (of_sweep.upper_rise - of_sweep.lower_rise) / 2)
                    / of_sweep.pairs_in_all
            ELSE coalesce(of_sweep.mean_change, 0)
        END::DECIMAL(38, 9) AS mean_rise,
        coalesce((of_sweep.raised - of_sweep.lowered) / of_sweep.pairs_in_all, 0)::DECIMAL(38, 9) AS share
    FROM market
    CROSS JOIN mart.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN of_sweep
        ON
            of_sweep.sweep_id = sweep.sweep_id
            AND of_sweep.source = market.source
            AND of_sweep.market = market.market
            AND of_sweep.product_type = market.product_type
            AND of_sweep.currency IS NOT DISTINCT FROM market.currency
),

-- How far prices of a market have moved up to each sweep: sums of logarithmic changes.
-- Decimals: the last bit of a sum of fractions depends on the order of its rows.
level AS (
    SELECT
        stepped.source,
        stepped.market,
        stepped.product_type,
        stepped.currency,
        stepped.started_at,
        sum(stepped.change) OVER up_to AS so_far,
        sum(stepped.rise) OVER up_to AS risen,
        {
            'at': stepped.started_at,
            'mean': (sum(stepped.mean_change) OVER up_to)::DOUBLE,
            'rise': (sum(stepped.mean_rise) OVER up_to)::DOUBLE,
            'share': (sum(stepped.share) OVER up_to)::DOUBLE
        } AS spread
    FROM stepped
    WINDOW up_to AS (
        PARTITION BY stepped.source, stepped.market, stepped.product_type, stepped.currency
        ORDER BY stepped.started_at
    )
)

SELECT
    level.*,
    max(level.risen) OVER onwards AS highest_since,
    -- The first of equals: on a quiet night, nothing rises.
    arg_max(level.spread, { 'rise': level.spread.rise, 'earliest': -epoch_us(level.started_at) }) OVER onwards
        AS spread_at_highest,
    first_value(level.spread) OVER (
        PARTITION BY level.source, level.market, level.product_type, level.currency
        ORDER BY mart.utc(level.started_at)
        RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND CURRENT ROW
    ) AS spread_before
FROM level
WINDOW onwards AS (
    PARTITION BY level.source, level.market, level.product_type, level.currency
    ORDER BY level.started_at
    ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
)
