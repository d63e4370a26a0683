-- One row per open flag that ends with this sweep: its evidence was answered without the finding, or the stay began.
WITH outdated AS (
    -- Breaches whose selling price is now too old to be judged: nothing shows that the price was put right.
    SELECT before.flag_id
    FROM state.flag_open AS before
    INNER JOIN (
        SELECT
            mart.subject_key(
                'floor_breach',
                mart.price_subject(
                    source.source,
                    price.property_id,
                    price.market,
                    price.check_in,
                    price.nights,
                    price.party,
                    price.currency,
                    price.room_id,
                    price.board_id,
                    price.policy_key,
                    price.channel
                )
            ) AS subject_key,
            max(price.observed_at) AS observed_at
        FROM lake.selling_price AS price
        CROSS JOIN (VALUES ('multi'), ('detail')) AS source (source)
        SEMI JOIN night.flag_unconfirmed AS evidence
            ON
                evidence.rule = 'floor_breach'
                AND evidence.item.property_id = price.property_id -- noqa: RF01
                AND evidence.item.source = source.source -- noqa: RF01
        GROUP BY subject_key -- noqa: RF02
    ) AS latest
        ON latest.subject_key = before.subject_key
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE
        before.rule = 'floor_breach'
        AND date_diff('second', latest.observed_at, sweep.started_at) / 86400.0 > analysis.price_days
),

-- Flags about a disparity whose own price was compared tonight.
compared AS (
    SELECT DISTINCT pair.flag_id
    FROM night.disparity_unconfirmed AS pair
    WHERE pair.flag_market IN (pair.market, pair.reference_market)
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
        WHEN met.flag_id IS NOT NULL THEN 'value'
        WHEN answered.is_only_compared_gone THEN 'not_compared'
        WHEN answered.is_gone THEN 'gone'
        WHEN answered.is_not_asked THEN 'not_asked'
        WHEN answered.is_beside_a_former_reference AND compared.flag_id IS NULL THEN 'reference_changed'
        WHEN outdated.flag_id IS NOT NULL THEN 'outdated'
        -- The answers may still show it: nothing shows that it was put right.
        WHEN made_by.rule_version <> before.rule_version THEN 'rule_changed'
        WHEN before.last_flagged_at <= settings.last_other_at THEN 'rule_changed'
        ELSE 'value'
    END AS ended_by
FROM state.flag_open AS before
CROSS JOIN night.sweep AS sweep
LEFT JOIN night.flag_answered AS answered ON answered.flag_id = before.flag_id
LEFT JOIN night.flag_met AS met ON met.flag_id = before.flag_id
LEFT JOIN compared ON compared.flag_id = before.flag_id
LEFT JOIN outdated ON outdated.flag_id = before.flag_id
LEFT JOIN night.rule_version AS made_by ON made_by.relation = before.relation
LEFT JOIN night.setting_change AS settings ON settings.relation = before.relation
-- A finding that is raised again stays open, even if the stay of its earlier evidence has begun.
ANTI JOIN night.finding AS finding ON finding.flag_id = before.flag_id
LEFT JOIN night.flag_held AS held ON held.flag_id = before.flag_id
WHERE
    before.check_in <= sweep.snapshot_date
    OR (
        held.is_by_rates IS NOT TRUE
        AND (
            met.flag_id IS NOT NULL
            OR (
                answered.seen = answered.standing
                AND NOT answered.is_of_silent_market
                AND NOT answered.is_awaited
                AND held.flag_id IS NULL
            )
        )
    )
