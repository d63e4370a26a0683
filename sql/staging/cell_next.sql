-- One row per cell as it was asked about last, while its stay lies ahead.
SELECT
    observed.cell_key,
    observed.operation,
    observed.property_id,
    observed.market,
    observed.product_type,
    observed.check_in,
    observed.nights,
    observed.party,
    observed.currency_asked,
    observed.status,
    observed.code,
    observed.searched_at,
    observed.offers,
    observed.sweep_id,
    observed.search_id,
    sweep.started_at AS asked_at,
    CASE WHEN observed.is_answered THEN observed.searched_at ELSE before.answered_at END AS answered_at,
    CASE WHEN observed.is_answered THEN observed.status ELSE before.answered_status END AS answered_status
FROM night.cell_observed AS observed
CROSS JOIN night.sweep AS sweep
LEFT JOIN state.cell AS before
    ON
        before.operation = observed.operation
        AND before.property_id = observed.property_id
        AND before.cell_key = observed.cell_key

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
