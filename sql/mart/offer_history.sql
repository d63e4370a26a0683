-- One row per source, offer key and interval in which nothing about it changed; is_offered is FALSE while it was gone.
-- valid_to: Start of the sweep that saw the next state; NULL: the state is the last one known.
-- ended_by: What ended the interval: `value`, `gone`, `back`, or `stay_began`; NULL: it has not ended.
-- total_per_night: total / nights, in currency.
-- board_family: Family of the board basis; unknown ids are `other`.
SELECT
    history.* EXCLUDE (longest_unseen_days),
    (history.total / history.nights)::DECIMAL(18, 4) AS total_per_night,
    coalesce(board.family, 'other') AS board_family,
    history.longest_unseen_days
FROM (
    SELECT * FROM state.offer_closed
    UNION ALL BY NAME
    SELECT * FROM state.offer_open
) AS history
LEFT JOIN ref.board_basis AS board ON board.board_id = history.board_id
