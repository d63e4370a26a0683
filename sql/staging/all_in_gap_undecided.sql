-- One row per all_in_gap found tonight that is not reported, because it is unknown which price deviates.
-- Two prices alone do not show which deviates: an open finding about the other one stands, unless a third market agrees
-- with it tonight. One about the reference market needs a market that no open finding accuses. A new finding about two
-- prices waits for a market that is silent tonight, or that has sold the offer until silent_nights ago.
WITH compared AS (
    SELECT
        found.subject_key,
        found.property_id,
        found.market,
        sign(found.size_pct) AS side,
        found.source,
        list_transform(found.evidence, LAMBDA item: item['role']) AS roles,
        list_filter(found.evidence, LAMBDA item: item['role'] = 'reference')[1].offer_key
            AS reference_key,
        mart.subject_key('all_in_gap', concat_ws('|', found.source, reference_key)) AS reference_subject,
        found.subject_key = reference_subject AS is_of_reference,
        CASE
            WHEN is_of_reference
                THEN
                    list_transform(
                        list_filter(found.evidence, LAMBDA item: item['role'] = 'market'),
                        LAMBDA item: item['offer_key']
                    )
            ELSE [reference_key]
        END AS others,
        list_contains(roles, 'compared') AS is_beside_majority,
        is_of_reference
        OR is_beside_majority
        OR (
            list_contains(roles, 'witness')
            AND len(list_filter(roles, LAMBDA role: role = 'market')) = 1
        ) AS is_decided,
        found.evidence[1].offer_key AS offer_key,
        before.subject_key IS NULL OR before.side_before <> side AS is_new
    FROM night.found AS found
    LEFT JOIN (
        SELECT
            flag.subject_key,
            sign(flag.size_pct) AS side_before
        FROM state.flag_open AS flag
        WHERE flag.rule = 'all_in_gap'
    ) AS before
        ON before.subject_key = found.subject_key
    WHERE found.rule = 'all_in_gap'
),

-- Those whose other prices are all what open findings are about, in the other direction.
contrary AS (
    SELECT each.subject_key
    FROM (
        SELECT
            compared.subject_key,
            compared.side,
            compared.source,
            len(compared.others) AS others,
            unnest(compared.others) AS other_key
        FROM compared
        WHERE compared.is_of_reference OR NOT compared.is_decided
    ) AS each
    INNER JOIN state.flag_open AS before
        ON
            before.rule = 'all_in_gap'
            AND before.subject_key = mart.subject_key('all_in_gap', concat_ws('|', each.source, each.other_key))
            AND sign(before.size_pct) <> each.side
    GROUP BY each.subject_key
    HAVING count(*) = any_value(each.others)
),

begun AS (
    SELECT compared.*
    FROM compared
    WHERE compared.is_new AND NOT compared.is_decided
),

-- Where a third market has sold the offer until lately, and may be back.
was_third AS (
    SELECT DISTINCT begun.subject_key
    FROM begun
    INNER JOIN state.offer_open AS own
        ON
            own.source = begun.source
            AND own.property_id = begun.property_id
            AND own.offer_key = begun.offer_key
    INNER JOIN state.offer_open AS third
        ON
            third.source = own.source
            AND third.property_id = own.property_id
            AND third.product_type = own.product_type
            AND third.check_in = own.check_in
            AND third.nights = own.nights
            AND third.party = own.party
            AND third.room_id IS NOT DISTINCT FROM own.room_id
            AND third.board_id IS NOT DISTINCT FROM own.board_id
            AND third.policy_key = own.policy_key
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE
        NOT third.is_offered
        AND third.market <> own.market
        AND third.offer_key <> begun.reference_key
        AND third.valid_from >= sweep.started_at - to_hours(24 * analysis.silent_nights + 12)
),

undecided AS (
    SELECT contrary.subject_key
    FROM contrary

    UNION

    SELECT was_third.subject_key
    FROM was_third

    UNION

    SELECT begun.subject_key
    FROM begun
    INNER JOIN night.market_silent AS silent
        ON
            silent.operation = 'single'
            AND silent.market <> begun.market
)

SELECT undecided.subject_key
FROM undecided

UNION

-- Those that agree do not outvote the reference market tonight, so nothing is compared with them.
SELECT compared.subject_key
FROM compared
SEMI JOIN undecided ON undecided.subject_key = compared.reference_subject
WHERE compared.is_beside_majority
