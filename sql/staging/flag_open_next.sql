-- One row per flag that is open after this sweep.
WITH observed AS (
    SELECT
        evidence.flag_id,
        bool_or(evidence.item.sweep_id = sweep.sweep_id) AS is_observed
    FROM (
        SELECT
            flag_id,
            unnest(evidence) AS item
        FROM night.finding
    ) AS evidence
    CROSS JOIN night.sweep AS sweep
    GROUP BY evidence.flag_id
)

SELECT
    finding.*,
    coalesce(before.first_flagged_at, sweep.started_at) AS first_flagged_at,
    coalesce(before.first_flagged_sweep_id, sweep.sweep_id) AS first_flagged_sweep_id,
    sweep.started_at AS last_flagged_at,
    sweep.sweep_id AS last_flagged_sweep_id,
    coalesce(before.snapshots, 0) + 1 AS snapshots
FROM night.finding AS finding
CROSS JOIN night.sweep AS sweep
LEFT JOIN state.flag_open AS before ON before.flag_id = finding.flag_id
LEFT JOIN observed ON observed.flag_id = finding.flag_id
WHERE before.flag_id IS NULL OR observed.is_observed

UNION ALL BY NAME

-- Not all of its evidence was observed tonight: nothing new is known, so it stays open as last seen.
SELECT before.*
FROM state.flag_open AS before
ANTI JOIN night.flag_ended AS ended ON ended.flag_id = before.flag_id
ANTI JOIN observed ON observed.flag_id = before.flag_id AND observed.is_observed
