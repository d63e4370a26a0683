-- One row per open flag that ends with this sweep: its evidence was answered without the finding, or the stay began.
WITH price_of AS (
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
        { 'observed_at': price.observed_at, 'input_id': price.input_id, 'price': price.price } AS seen,
        price.loaded_at
    FROM lake.selling_price AS price
    CROSS JOIN (VALUES ('multi'), ('detail')) AS source (source)
    SEMI JOIN night.flag_unconfirmed AS evidence
        ON
            evidence.rule = 'floor_breach'
            AND evidence.item.property_id = price.property_id
            AND evidence.item.source = source.source
),

-- Breaches with their selling price: now too old to be judged, or the same as when last flagged. It was not put right
-- in either case: whether the same price was below the floor in force is unknown, as the floor has moved since.
priced AS (
    SELECT
        before.flag_id,
        max(price.seen) AS now_seen,
        max(price.seen) FILTER (WHERE price.loaded_at <= flagged.finished_at) AS then_seen,
        date_diff('second', now_seen['observed_at'], any_value(sweep.started_at)) / 86400.0
        > any_value(analysis.price_days) AS is_old,
        now_seen['observed_at'] = then_seen['observed_at']
        AND now_seen['price'] = then_seen['price'] AS is_same
    FROM state.flag_open AS before
    INNER JOIN price_of AS price ON price.subject_key = before.subject_key
    LEFT JOIN mart.sweep AS flagged ON flagged.sweep_id = before.last_flagged_sweep_id
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE before.rule = 'floor_breach'
    GROUP BY before.flag_id
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
        WHEN priced.is_old THEN 'outdated'
        -- The answers may still show it: nothing shows that it was put right.
        WHEN made_by.rule_version <> before.rule_version THEN 'rule_changed'
        WHEN before.last_flagged_at <= settings.last_other_at THEN 'rule_changed'
        WHEN priced.is_same THEN 'outdated'
        ELSE 'value'
    END AS ended_by
FROM state.flag_open AS before
CROSS JOIN night.sweep AS sweep
LEFT JOIN night.flag_answered AS answered ON answered.flag_id = before.flag_id
LEFT JOIN night.flag_met AS met ON met.flag_id = before.flag_id
LEFT JOIN compared ON compared.flag_id = before.flag_id
LEFT JOIN priced ON priced.flag_id = before.flag_id
LEFT JOIN night.rule_version AS made_by ON made_by.relation = before.relation
LEFT JOIN night.setting_change AS settings ON settings.relation = before.relation
-- A finding that is raised again stays open, even if the stay of its earlier evidence has begun.
ANTI JOIN night.finding AS finding ON finding.flag_id = before.flag_id
LEFT JOIN night.flag_held AS held ON held.flag_id = before.flag_id
WHERE
    before.check_in <= sweep.snapshot_date
    OR (
        held.is_by_others IS NOT TRUE
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
