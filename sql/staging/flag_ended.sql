-- One row per open flag that ends with this sweep: its evidence was answered and nothing is found, or the stay began.
WITH evidence AS (
    SELECT
        before.flag_id,
        unnest(before.evidence) AS item
    FROM state.flag_open AS before
    ANTI JOIN night.finding AS finding ON finding.flag_id = before.flag_id
    -- A rule that could not be asked says nothing of its flags.
    ANTI JOIN night.failed_rule AS failed ON failed.relation = before.relation
),

-- An offer of which the stay began is in the state no more, and has nothing to say.
answered AS (
    SELECT
        evidence.flag_id,
        count(offer.offer_key) AS standing,
        count(offer.offer_key) FILTER (WHERE offer.seen_sweep_id = sweep.sweep_id) AS seen,
        coalesce(bool_or(NOT offer.is_offered), FALSE) AS is_gone
    FROM evidence
    CROSS JOIN night.sweep AS sweep
    LEFT JOIN state.offer_open AS offer
        ON
            offer.source = evidence.item.source -- noqa: RF01
            AND offer.property_id = evidence.item.property_id -- noqa: RF01
            AND offer.offer_key = evidence.item.offer_key -- noqa: RF01
    GROUP BY evidence.flag_id
)

SELECT
    before.flag_id,
    CASE
        WHEN before.check_in <= sweep.snapshot_date THEN before.check_in::TIMESTAMPTZ
        ELSE sweep.started_at
    END AS resolved_at,
    sweep.sweep_id AS resolved_sweep_id,
    CASE
        WHEN before.check_in <= sweep.snapshot_date OR answered.standing = 0 THEN 'stay_began'
        WHEN answered.is_gone THEN 'gone'
        ELSE 'value'
    END AS ended_by
FROM state.flag_open AS before
CROSS JOIN night.sweep AS sweep
LEFT JOIN answered ON answered.flag_id = before.flag_id
WHERE
    before.check_in <= sweep.snapshot_date
    OR answered.seen = answered.standing
