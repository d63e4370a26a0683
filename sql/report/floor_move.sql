-- One row per sweep, source and market in which floors of hotel-only offers changed while their totals did not.
-- planned: Number of hotel-only cells of the sweep in this market.
-- answered: Number of hotel-only cells that were answered.
-- comparable: Number of hotel-only cells that had an offer.
-- moves: Number of offers whose floor changed while the total did not.
-- raised: Number of moves upwards.
-- lowered: Number of moves downwards.
-- stated: Number of offers that now state a floor and did not before.
-- withdrawn: Number of offers that no longer state a floor.
-- median_change_pct: Median of the moves up and down, in percent of the previous floor; > 0: raised.
-- largest_change_pct: Largest move in either direction, in percent of the previous floor; > 0: raised.
WITH moved AS (
    SELECT
        move.sweep_id,
        move.source,
        move.market,
        count(*) AS moves,
        count(*) FILTER (WHERE move.kind = 'raised') AS raised,
        count(*) FILTER (WHERE move.kind = 'lowered') AS lowered,
        count(*) FILTER (WHERE move.kind = 'stated') AS stated,
        count(*) FILTER (WHERE move.kind = 'withdrawn') AS withdrawn,
        median(move.change_pct) AS median_change_pct,
        arg_max(move.change_pct, (abs(move.change_pct), move.change_pct)) AS largest_change_pct
    FROM mart.floor_move AS move
    GROUP BY move.sweep_id, move.source, move.market
),

asked AS (
    SELECT
        cell.sweep_id,
        CASE cell.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
        cell.market,
        count(*) AS planned,
        count(*) FILTER (WHERE mart.is_answered(cell.status)) AS answered,
        count(*) FILTER (WHERE cell.status = 'offered') AS comparable
    FROM lake.cell AS cell
    WHERE cell.product_type = 'Hotel'
    GROUP BY ALL
)

SELECT
    moved.sweep_id,
    sweep.snapshot_date,
    moved.source,
    moved.market,
    asked.planned,
    asked.answered,
    asked.comparable,
    moved.moves,
    moved.raised,
    moved.lowered,
    moved.stated,
    moved.withdrawn,
    moved.median_change_pct,
    moved.largest_change_pct
FROM moved
INNER JOIN mart.sweep AS sweep ON sweep.sweep_id = moved.sweep_id
LEFT JOIN asked
    ON
        asked.sweep_id = moved.sweep_id
        AND asked.source = moved.source
        AND asked.market = moved.market
