-- One row per source and offer key that was dearer than in the reference market when it was last compared.
-- Exact pairs; staging.parity_group_open_next has those of the other grades.
WITH observed AS (
    SELECT pair.*
    FROM night.parity_observed AS pair
    WHERE pair.match_grade = 'exact'
)

SELECT
    observed.source,
    observed.offer_key,
    observed.property_id,
    observed.market,
    observed.check_in,
    observed.reference_market,
    observed.reference_offer_key,
    observed.currency_basis,
    coalesce(before.began_at, sweep.started_at) AS began_at,
    sweep.started_at AS last_losing_at,
    coalesce(before.snapshots, 0) + 1 AS snapshots,
    observed.gap_pct AS last_gap_pct,
    greatest(observed.gap_pct, before.largest_gap_pct) AS largest_gap_pct
FROM observed
CROSS JOIN night.sweep AS sweep
LEFT JOIN state.parity_open AS before
    ON
        before.source = observed.source
        AND before.property_id = observed.property_id
        AND before.offer_key = observed.offer_key
        AND before.reference_offer_key = observed.reference_offer_key
        AND before.currency_basis = observed.currency_basis
WHERE
    observed.is_losing
    AND observed.check_in > sweep.snapshot_date

UNION ALL BY NAME

-- Nothing new is known: the episode neither grows nor ends.
SELECT before.*
FROM state.parity_open AS before
CROSS JOIN night.sweep AS sweep
ANTI JOIN observed
    ON
        observed.source = before.source
        AND observed.property_id = before.property_id
        AND observed.offer_key = before.offer_key
ANTI JOIN night.parity_gone AS gone
    ON
        gone.source = before.source
        AND gone.property_id = before.property_id
        AND gone.offer_key = before.offer_key
ANTI JOIN night.parity_gone AS gone_there
    ON
        gone_there.source = before.source
        AND gone_there.property_id = before.property_id
        AND gone_there.offer_key = before.reference_offer_key
ANTI JOIN night.offer_dropped AS dropped
    ON
        dropped.source = before.source
        AND dropped.property_id = before.property_id
        AND dropped.offer_key IN (before.offer_key, before.reference_offer_key)
WHERE before.check_in > sweep.snapshot_date
