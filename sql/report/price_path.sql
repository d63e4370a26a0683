-- One row per source, market, product type and lead days: how totals change as check-in approaches, over all sweeps.
-- Each offer is compared with itself if it was on sale in two answers in a row, so a change of what is offered is not a
-- price change, nor is an offer that comes back at another total. A change between answers several days apart is spread
-- evenly over these days; lead times that no sweep saw are left out.
-- sweeps: Number of sweeps that saw such offers.
-- seen: Number of offers seen, summed over the sweeps.
-- pairs: Number of offers seen whose previous answer also had a total: the comparable ones.
-- raised: Number of pairs whose total rose.
-- lowered: Number of pairs whose total fell.
-- changed_share: (raised + lowered) / pairs: changes per offer and snapshot.
-- daily_change_pct: Mean change on that day of offers seen before and after it, in percent (geometric); NULL: none.
-- volatility_pct: Root mean square of the logarithmic changes between answers, in percent; NULL: no pairs.
-- index_first: Chained mean changes from the largest lead time on, 100 at its start; unseen days change nothing.
WITH by_lead AS (
    SELECT
        move.source,
        move.market,
        move.product_type,
        move.lead_days,
        count(*) FILTER (WHERE move.seen > 0) AS sweeps,
        sum(move.seen)::BIGINT AS seen,
        sum(move.pairs)::BIGINT AS pairs,
        sum(move.raised)::BIGINT AS raised,
        sum(move.lowered)::BIGINT AS lowered,
        sum(move.spanning)::BIGINT AS spanning,
        -- Decimals, as they are kept to nine places: a sum of fractions would depend on the order of its rows.
        sum(move.drift::DECIMAL(38, 9))::DOUBLE AS drift,
        sum(move.squares::DECIMAL(38, 9))::DOUBLE AS squares
    FROM state.price_move AS move
    GROUP BY move.source, move.market, move.product_type, move.lead_days
),

chained AS (
    SELECT
        by_lead.*,
        sum(by_lead.drift / nullif(by_lead.spanning, 0)) OVER so_far AS drift_so_far
    FROM by_lead
    WINDOW
        so_far AS (
            PARTITION BY by_lead.source, by_lead.market, by_lead.product_type
            ORDER BY by_lead.lead_days DESC
        )
)

SELECT
    chained.source,
    chained.market,
    chained.product_type,
    chained.lead_days,
    chained.sweeps,
    chained.seen,
    chained.pairs,
    chained.raised,
    chained.lowered,
    (chained.raised + chained.lowered)::DOUBLE / nullif(chained.pairs, 0) AS changed_share,
    round(100 * (exp(chained.drift / nullif(chained.spanning, 0)) - 1), 6) AS daily_change_pct,
    round(100 * sqrt(chained.squares / nullif(chained.pairs, 0)), 6) AS volatility_pct,
    round(100 * exp(coalesce(chained.drift_so_far, 0)), 6) AS index_first
FROM chained
WHERE chained.seen > 0
