-- One row per market and lead time with a price: how prices moved since the last published night.
-- `__of` counts properties and months of stays: a property that moves the prices of a month does so in lists and
-- details, for all guests and products, and for many days at once.
-- If no cell was priced on both nights, nothing can be measured, and the row says so.
SELECT
    priced.market,
    priced.lead,
    moves.changed AS price_changed_share,
    coalesce(moves.moving, 0) AS price_changed_share__of,
    moves.largest AS largest_move,
    coalesce(moves.moving, 0) AS largest_move__of
FROM (
    SELECT DISTINCT
        price.market,
        price.lead
    FROM audit.cell_price AS price
) AS priced
LEFT JOIN (
    SELECT
        move.market,
        move.lead,
        approx_count_distinct(row(move.property_id, move.month)) AS moving,
        (count(*) FILTER (WHERE move.log_move <> 0) + 0.5) / (count(*) + 0.5) AS changed,
        exp(quantile_cont(abs(move.log_move), 0.999)) AS largest
    FROM audit.price_move AS move
    GROUP BY move.market, move.lead
) AS moves ON moves.market = priced.market AND moves.lead = priced.lead
