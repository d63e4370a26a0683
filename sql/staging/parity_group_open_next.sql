-- One row per match grade, source and group of offers that was dearer than in the reference market when last compared.
-- A group (grades below exact) holds the offers of one cell, room and currency and, for the grade `board_family`, one
-- board family. Its cheapest offer may change from night to night.
SELECT
    observed.match_grade,
    observed.source,
    observed.property_id,
    observed.cell_key,
    observed.room_no,
    observed.board_family,
    observed.currency,
    observed.check_in,
    observed.reference_cell_key,
    observed.reference_currency,
    observed.currency_basis,
    coalesce(before.began_at, sweep.started_at) AS began_at,
    coalesce(before.snapshots, 0) + 1 AS snapshots
FROM night.parity_observed AS observed
CROSS JOIN night.sweep AS sweep
LEFT JOIN state.parity_group_open AS before
    ON
        before.match_grade = observed.match_grade
        AND before.source = observed.source
        AND before.property_id = observed.property_id
        AND before.cell_key = observed.cell_key
        AND before.room_no = observed.room_no
        AND before.board_family = observed.board_family
        AND before.currency = observed.currency
        AND before.reference_cell_key = observed.reference_cell_key
        AND before.reference_currency = observed.reference_currency
        AND before.currency_basis = observed.currency_basis
WHERE
    observed.match_grade <> 'exact'
    AND observed.is_losing
    AND observed.check_in > sweep.snapshot_date

UNION ALL BY NAME

-- Nothing new is known: the count neither grows nor ends.
SELECT before.* EXCLUDE (is_compared, ended_by)
FROM night.parity_group_judged AS before
WHERE
    NOT before.is_compared
    AND before.ended_by IS NULL
