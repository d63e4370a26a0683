-- One row per cell whose stay is in the future: its latest request.
WITH told AS (
    SELECT
        observed.*,
        sweep.started_at,
        -- The unreadable part may be the very offer that seems to be missing: such an answer changes nothing known.
        observed.is_answered AND (observed.status = 'offered' OR observed.is_answered_whole) AS is_known,
        CASE WHEN observed.status <> 'offered' THEN observed.code END AS code_now,
        is_known
        AND coalesce(before.known_status = observed.status, FALSE)
        AND coalesce(before.known_code, 0) = coalesce(code_now, 0) AS is_confirmed,
        before.answered_at,
        before.answered_status,
        before.known_status,
        before.known_code,
        before.known_from,
        before.known_seen_at,
        before.parts_in_doubt AS doubted_before,
        coalesce(before.spells, 0) AS spells
    FROM night.cell_observed AS observed
    CROSS JOIN night.sweep AS sweep
    LEFT JOIN state.cell AS before
        ON
            before.operation = observed.operation
            AND before.property_id = observed.property_id
            AND before.cell_key = observed.cell_key
)

SELECT
    told.cell_key,
    told.operation,
    told.property_id,
    told.market,
    told.product_type,
    told.check_in,
    told.nights,
    told.party,
    told.currency_asked,
    told.status,
    told.code,
    told.searched_at,
    told.offers,
    told.sweep_id,
    told.search_id,
    told.started_at AS asked_at,
    told.is_answered_whole AS is_whole,
    CASE
        WHEN told.is_answered THEN told.parts_in_doubt ELSE coalesce(told.doubted_before, 0)
    END AS parts_in_doubt,
    CASE WHEN told.is_answered THEN told.searched_at ELSE told.answered_at END AS answered_at,
    CASE WHEN told.is_answered THEN told.status ELSE told.answered_status END AS answered_status,
    CASE WHEN told.is_known THEN told.status ELSE told.known_status END AS known_status,
    CASE WHEN told.is_known THEN told.code_now ELSE told.known_code END AS known_code,
    CASE WHEN told.is_known AND NOT told.is_confirmed THEN told.started_at ELSE told.known_from END AS known_from,
    CASE WHEN told.is_known THEN told.started_at ELSE told.known_seen_at END AS known_seen_at,
    told.spells + CASE
        WHEN told.is_known AND told.status = 'offered' AND NOT told.is_confirmed THEN 1
        ELSE 0
    END AS spells
FROM told

UNION ALL BY NAME

SELECT before.*
FROM state.cell AS before
CROSS JOIN night.sweep AS sweep
ANTI JOIN night.cell_observed AS observed
    ON
        observed.operation = before.operation
        AND observed.property_id = before.property_id
        AND observed.cell_key = before.cell_key
WHERE before.check_in > sweep.snapshot_date
