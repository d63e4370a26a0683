-- One row per flag that stands after this sweep.
WITH observed AS (
    SELECT
        evidence.flag_id,
        bool_or(evidence.item.sweep_id = sweep.sweep_id) AS is_observed -- noqa: RF01
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
    CASE WHEN before.flag_id IS NULL OR observed.is_observed THEN sweep.started_at ELSE before.last_flagged_at END
        AS last_flagged_at,
    CASE WHEN before.flag_id IS NULL OR observed.is_observed THEN sweep.sweep_id ELSE before.last_flagged_sweep_id END
        AS last_flagged_sweep_id,
    CASE
        WHEN before.flag_id IS NULL THEN 1
        ELSE before.snapshots + coalesce(observed.is_observed, FALSE)::BIGINT
    END AS snapshots
FROM night.finding AS finding
CROSS JOIN night.sweep AS sweep
LEFT JOIN state.flag_open AS before ON before.flag_id = finding.flag_id
LEFT JOIN observed ON observed.flag_id = finding.flag_id

UNION ALL BY NAME

-- Not found tonight, because some of its evidence was not answered: nothing is known, so it stands.
SELECT before.*
FROM state.flag_open AS before
ANTI JOIN night.finding AS finding ON finding.flag_id = before.flag_id
ANTI JOIN night.flag_ended AS ended ON ended.flag_id = before.flag_id
