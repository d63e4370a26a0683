-- One row per market and lead time with a price: how prices moved since the last published night.
-- `__of` counts properties and months of stays: a property that moves the prices of a month does so in lists and
-- details, for all guests and products, and for many days at once.
-- If no cell was priced on both nights, nothing can be measured, and the row says so.
-- What all prices of a market move by does not count as a change: a supplier that converts them at the rate of the day
-- would change all of them on weekdays and hardly any at weekends, and each weekend would be held back.
WITH moved AS (
    SELECT
        move.*,
        move.total_before::DOUBLE * exp(median(move.log_move) OVER (PARTITION BY move.market, move.currency))
            AS total_expected
    FROM audit.price_move AS move
)

SELECT
    priced.market,
    priced.lead,
    moves.changed AS price_moved_share,
    coalesce(moves.moving, 0) AS price_moved_share__of,
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
        (
            count(*) FILTER (
                WHERE
                abs(move.total::DOUBLE - move.total_expected)
                > greatest(
                    0.005 * move.total_expected,
                    -- Rounding to whole units moves a low price by more.
                    CASE WHEN move.total = trunc(move.total) AND move.total_before = trunc(move.total_before) THEN 1 END
                )
            )
            + 0.5
        ) / (count(*) + 0.5) AS changed,
        exp(quantile_cont(abs(move.log_move), 0.999)) AS largest
    FROM moved AS move
    GROUP BY move.market, move.lead
) AS moves ON moves.market = priced.market AND moves.lead = priced.lead
