-- One row per group of offers that was dearer before this sweep: whether its episode ends; grades below exact.
-- is_compared: Whether the sweep compares it again.
-- ended_by: Why its episode ends, as in mart.parity_group_episode; NULL: it does not, or nothing new is known.
WITH observed AS (
    SELECT pair.*
    FROM night.parity_observed AS pair
    WHERE pair.match_grade <> 'exact'
),

-- Cells whose stay is now requested in another currency. Any other doubt may concern only part of a cell.
not_asked AS (
    SELECT DISTINCT
        offer.source,
        offer.property_id,
        offer.cell_key
    FROM night.offer_dropped AS offer
    WHERE offer.ended_by = 'not_asked'
)

SELECT
    before.*,
    observed.cell_key IS NOT NULL AS is_compared,
    CASE
        WHEN
            observed.reference_cell_key <> before.reference_cell_key
            OR observed.reference_currency <> before.reference_currency
            THEN 'reference_changed'
        WHEN observed.currency_basis <> before.currency_basis THEN 'basis_changed'
        WHEN NOT observed.is_losing THEN 'resolved'
        WHEN
            observed.cell_key IS NULL
            AND (
                (here.is_answered_whole AND sold.cell_key IS NULL AND silent.market IS NULL)
                OR (there.is_answered_whole AND sold_there.cell_key IS NULL AND silent_there.market IS NULL)
            )
            THEN 'gone'
        WHEN observed.cell_key IS NULL AND coalesce(not_asked.cell_key, not_asked_there.cell_key) IS NOT NULL
            THEN 'not_asked'
        WHEN before.check_in <= sweep.snapshot_date THEN 'stay_began'
    END AS ended_by
FROM state.parity_group_open AS before
CROSS JOIN night.sweep AS sweep
LEFT JOIN observed
    ON
        observed.match_grade = before.match_grade
        AND observed.source = before.source
        AND observed.property_id = before.property_id
        AND observed.cell_key = before.cell_key
        AND observed.room_no = before.room_no
        AND observed.board_family = before.board_family
        AND observed.currency = before.currency
LEFT JOIN not_asked
    ON
        not_asked.source = before.source
        AND not_asked.property_id = before.property_id
        AND not_asked.cell_key = before.cell_key
LEFT JOIN not_asked AS not_asked_there
    ON
        not_asked_there.source = before.source
        AND not_asked_there.property_id = before.property_id
        AND not_asked_there.cell_key = before.reference_cell_key
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
-- A market without any offer at all has more likely failed: what it does not sell tonight is unknown.
LEFT JOIN night.market_silent AS silent
    ON
        silent.operation = here.operation
        AND silent.market = here.market
LEFT JOIN night.market_silent AS silent_there
    ON
        silent_there.operation = there.operation
        AND silent_there.market = there.market
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
