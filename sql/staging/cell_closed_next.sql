-- One row per interval of one status of a cell that ends with this sweep: by another status, or because the stay began.
SELECT
    before.cell_key,
    before.operation,
    before.property_id,
    before.market,
    before.product_type,
    before.check_in,
    before.nights,
    before.party,
    before.known_status,
    before.known_code,
    before.known_from,
    before.known_seen_at,
    before.spells,
    CASE WHEN observed.cell_key IS NULL THEN before.check_in::TIMESTAMPTZ ELSE sweep.started_at END AS known_to,
    coalesce(observed.status, 'stay_began') AS next_status,
    CASE WHEN observed.status <> 'offered' THEN observed.code END AS next_code
FROM state.cell AS before
CROSS JOIN night.sweep AS sweep
LEFT JOIN night.cell_observed AS observed
    ON
        observed.operation = before.operation
        AND observed.property_id = before.property_id
        AND observed.cell_key = before.cell_key
        AND observed.is_answered
        AND (observed.status = 'offered' OR observed.is_answered_whole)
        AND (
            observed.status <> before.known_status
            OR (observed.status <> 'offered' AND coalesce(observed.code, 0) <> coalesce(before.known_code, 0))
        )
WHERE
    before.known_status IS NOT NULL
    AND (
        observed.cell_key IS NOT NULL
        -- A cell requested again on its day of check-in, and rejected for that, is still carried.
        OR before.check_in <= sweep.snapshot_date
    )
