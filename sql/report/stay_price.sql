-- One row per measure, source, market and product type: how length, guests, rooms and meals change the price of a stay.
-- measure: `stay_length_discount`, `adult_supplement`, `child_supplement`, `multi_room_premium`, `premium of` a board.
-- A supplement is per added adult or child, in percent of the total of the smaller party.
-- planned: Number of offers to which the measure applies.
-- comparable: Number of offers with a counterpart in the same sweep.
-- share_above_0: Share of comparable offers with a value above 0.
-- p10_pct: 10th percentile of comparable offers, in percent.
-- median_pct: Median of comparable offers, in percent.
-- p90_pct: 90th percentile of comparable offers, in percent.
WITH measured AS (
    SELECT
        'stay_length_discount' AS measure,
        long.source,
        long.market,
        long.product_type,
        long.discount_pct_of_nights AS pct
    FROM mart.stay_length AS long

    UNION ALL

    SELECT
        guest.kind || '_supplement' AS measure,
        guest.source,
        guest.market,
        guest.product_type,
        guest.supplement_per_guest_pct AS pct
    FROM mart.occupancy_supplement AS guest

    UNION ALL

    SELECT
        'multi_room_premium' AS measure,
        room.source,
        room.market,
        room.product_type,
        room.premium_pct AS pct
    FROM mart.multi_room_premium AS room

    UNION ALL

    SELECT
        'premium of ' || board.board_family AS measure,
        board.source,
        board.market,
        board.product_type,
        board.premium_pct AS pct
    FROM mart.board_premium AS board
),

summed AS (
    SELECT
        measured.measure,
        measured.source,
        measured.market,
        measured.product_type,
        count(*) AS planned,
        count(measured.pct) AS comparable,
        count(*) FILTER (WHERE measured.pct > 0) AS above_0,
        -- One list, not three columns: each would hold all values in memory.
        quantile_cont(measured.pct, [0.1, 0.5, 0.9]) AS quantiles
    FROM measured
    GROUP BY measured.measure, measured.source, measured.market, measured.product_type
)

SELECT
    summed.measure,
    summed.source,
    summed.market,
    summed.product_type,
    summed.planned,
    summed.comparable,
    summed.above_0 / nullif(summed.comparable, 0) AS share_above_0,
    round(summed.quantiles[1], 6) AS p10_pct,
    round(summed.quantiles[2], 6) AS median_pct,
    round(summed.quantiles[3], 6) AS p90_pct
FROM summed
