-- One row per match grade, source and group of offers that was dearer than in the reference market when last compared.
-- A group is that of a pair below the exact grade: the offers of a cell, room, currency and, of the grade
-- `board_family`, board family. Which offer is the cheapest of it may change from night to night.
WITH observed AS (
    SELECT pair.*
    FROM night.parity_observed AS pair
    WHERE pair.match_grade <> 'exact'
)

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
FROM observed
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
    observed.is_losing
    AND observed.check_in > sweep.snapshot_date

UNION ALL BY NAME

-- Nothing was learnt: the count neither grows nor ends. It ends where an answer that says all has no offer of a group.
SELECT before.*
FROM state.parity_group_open AS before
CROSS JOIN night.sweep AS sweep
LEFT JOIN night.cell_observed AS here
    ON
        here.source = before.source
        AND here.property_id = before.property_id
        AND here.cell_key = before.cell_key
LEFT JOIN night.cell_observed AS there
    ON
        there.source = before.source
        AND there.property_id = before.property_id
        AND there.cell_key = before.reference_cell_key
LEFT JOIN night.group_observed AS sold
    ON
        sold.match_grade = before.match_grade
        AND sold.source = before.source
        AND sold.property_id = before.property_id
        AND sold.cell_key = before.cell_key
        AND sold.room_no = before.room_no
        AND sold.board_family = before.board_family
        AND sold.currency = before.currency
LEFT JOIN night.group_observed AS sold_there
    ON
        sold_there.match_grade = before.match_grade
        AND sold_there.source = before.source
        AND sold_there.property_id = before.property_id
        AND sold_there.cell_key = before.reference_cell_key
        AND sold_there.room_no = before.room_no
        AND sold_there.board_family = before.board_family
        AND sold_there.currency = before.reference_currency
ANTI JOIN observed
    ON
        observed.match_grade = before.match_grade
        AND observed.source = before.source
        AND observed.property_id = before.property_id
        AND observed.cell_key = before.cell_key
        AND observed.room_no = before.room_no
        AND observed.board_family = before.board_family
        AND observed.currency = before.currency
WHERE
    before.check_in > sweep.snapshot_date
    AND (here.is_answered_whole IS NOT TRUE OR sold.cell_key IS NOT NULL)
    AND (there.is_answered_whole IS NOT TRUE OR sold_there.cell_key IS NOT NULL)
