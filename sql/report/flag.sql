-- One row per finding that stands: `nightaudit explain FLAG` leads it back to the raw answers.
-- hours_flagged: Hours from first_flagged_at to the start of the last sweep that observed its evidence.
SELECT
    flag.*,
    date_diff('second', flag.first_flagged_at, flag.last_flagged_at) / 3600.0 AS hours_flagged
FROM state.flag_open AS flag
