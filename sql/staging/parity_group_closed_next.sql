-- One row per episode of a group of offers that ends with this sweep; grades below exact only.
SELECT
    ended.* EXCLUDE (is_compared),
    place.market,
    place_there.market AS reference_market,
    CASE
        WHEN ended.ended_by = 'stay_began' THEN ended.check_in::TIMESTAMPTZ
        ELSE sweep.started_at
    END AS ended_at
FROM night.parity_group_judged AS ended
CROSS JOIN night.sweep AS sweep
INNER JOIN state.cell AS place
    ON
        place.property_id = ended.property_id
        AND place.cell_key = ended.cell_key
        AND (place.operation = 'multi') = (ended.source = 'multi')
INNER JOIN state.cell AS place_there
    ON
        place_there.property_id = ended.property_id
        AND place_there.cell_key = ended.reference_cell_key
        AND (place_there.operation = 'multi') = (ended.source = 'multi')
WHERE ended.ended_by IS NOT NULL
