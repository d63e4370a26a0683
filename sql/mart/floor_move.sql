-- One row per source, hotel-only offer key and sweep in which the floor changed while the total did not.
-- kind: `raised`, `lowered`, `stated` (there was no floor before) or `withdrawn` (there is none now).
-- change: floor - floor_before, in currency; > 0: raised; NULL: one of the two was not stated.
-- change_pct: change in percent of floor_before.
SELECT
    move.*,
    CASE
        WHEN move.floor_before IS NULL THEN 'stated'
        WHEN move.floor IS NULL THEN 'withdrawn'
        WHEN move.floor > move.floor_before THEN 'raised'
        ELSE 'lowered'
    END AS kind,
    (move.floor - move.floor_before)::DECIMAL(18, 4) AS change,
    100 * (move.floor - move.floor_before)::DOUBLE / move.floor_before::DOUBLE AS change_pct
FROM state.floor_move AS move
