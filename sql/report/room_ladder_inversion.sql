-- One row per offer of the usually better room that is cheaper than the lesser room for the same stay.
-- size_pct: amount in percent of lesser_total; always > 0.
-- amount: lesser_total - better_total, in currency; always > 0.
-- better_room_id: Room that is dearer in most stays.
-- lesser_room_id: Room that is cheaper in most stays.
-- better_total: Total of the better room, in currency.
-- lesser_total: Total of the lesser room, in currency.
-- stays_compared: Number of stays in which both rooms were seen under the same terms.
-- stays_dearer: Number of compared stays in which the better room was dearer.
WITH offer AS (
    SELECT
        -- Not the text: offers are kept in memory here, and it would be a sixth of the time.
        latest.source = 'multi' AS is_list,
        latest.property_id,
        latest.cell_key,
        latest.offer_key,
        latest.room_id,
        latest.total,
        latest.seen_search_id,
        latest.seen_offer_no,
        -- All but property, room and stay in one number, valid within the query: joining and grouping by eleven
        -- columns took twice as long.
        hash(
            latest.source,
            latest.market,
            latest.product_type,
            latest.party,
            latest.currency_asked,
            latest.currency,
            latest.room_stay_id,
            latest.board_id,
            latest.policy_key,
            latest.seen_sweep_id
        ) AS terms
    FROM mart.offer_latest AS latest
    WHERE
        latest.total > 0
        AND latest.currency IS NOT NULL
        AND latest.room_id IS NOT NULL
        AND latest.board_id IS NOT NULL
        AND (latest.is_whole OR latest.source = 'multi')
),

-- Two rooms of one stay under one set of terms, in one sweep; a cell is a property, market, stay, party and so on.
usual AS (
    SELECT
        one.property_id,
        one.terms,
        one.room_id AS one_room_id,
        other.room_id AS other_room_id,
        count(*) AS stays_compared,
        count(*) FILTER (WHERE one.total > other.total) AS one_dearer,
        count(*) FILTER (WHERE one.total < other.total) AS other_dearer
    FROM offer AS one
    INNER JOIN offer AS other
        ON
            other.cell_key = one.cell_key
            AND other.terms = one.terms
            AND other.property_id = one.property_id
            AND other.room_id > one.room_id
    GROUP BY one.property_id, one.terms, one.room_id, other.room_id
),

ladder AS (
    SELECT
        usual.property_id,
        usual.terms,
        usual.stays_compared,
        greatest(usual.one_dearer, usual.other_dearer) AS stays_dearer,
        CASE
            WHEN usual.one_dearer > usual.other_dearer THEN usual.one_room_id ELSE usual.other_room_id
        END AS better_room_id,
        CASE
            WHEN usual.one_dearer > usual.other_dearer THEN usual.other_room_id ELSE usual.one_room_id
        END AS lesser_room_id
    FROM usual
    CROSS JOIN ref.analysis AS analysis
    WHERE
        -- An order without an exception has no inversion.
        least(usual.one_dearer, usual.other_dearer) > 0
        AND usual.stays_compared >= analysis.ladder_stays
        AND 100 * stays_dearer >= analysis.ladder_pct * usual.stays_compared
),

-- One row per stay of a ladder: the comparison itself, and the evidence for which room is the better one.
compared AS (
    SELECT
        ladder.*,
        better.is_list,
        better.cell_key,
        better.offer_key,
        better.total,
        better.seen_search_id,
        better.seen_offer_no,
        lesser.offer_key AS lesser_key,
        lesser.total AS lesser_total,
        lesser.seen_search_id AS lesser_search_id,
        lesser.seen_offer_no AS lesser_offer_no
    FROM ladder
    INNER JOIN offer AS better
        ON
            better.property_id = ladder.property_id
            AND better.terms = ladder.terms
            AND better.room_id = ladder.better_room_id
    INNER JOIN offer AS lesser
        ON
            lesser.cell_key = better.cell_key
            AND lesser.terms = ladder.terms
            AND lesser.property_id = ladder.property_id
            AND lesser.room_id = ladder.lesser_room_id
),

-- Numbers alone: source and sweep are those of the terms.
evidence AS (
    SELECT
        compared.property_id,
        compared.terms,
        compared.better_room_id,
        compared.lesser_room_id,
        list_sort(list({
            'cell_key': compared.cell_key,
            'better_key': compared.offer_key,
            'better_search_id': compared.seen_search_id,
            'better_offer_no': compared.seen_offer_no,
            'lesser_key': compared.lesser_key,
            'lesser_search_id': compared.lesser_search_id,
            'lesser_offer_no': compared.lesser_offer_no
        })) AS stays
    FROM compared
    GROUP BY compared.property_id, compared.terms, compared.better_room_id, compared.lesser_room_id
),

sized AS (
    SELECT
        compared.*,
        compared.lesser_total - compared.total AS gap,
        100 * gap::DOUBLE / compared.lesser_total::DOUBLE AS size_pct
    FROM compared
    WHERE compared.total < compared.lesser_total
)

SELECT
    'room_ladder_inversion' AS rule,
    2 AS rule_version,
    mart.subject_key(
        rule,
        concat_ws(
            '|',
            better.source,
            sized.offer_key,
            sized.lesser_room_id
        )
    ) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(sized.size_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    sized.size_pct,
    sized.gap::DECIMAL(18, 4) AS amount,
    better.source,
    sized.property_id,
    better.market,
    better.product_type,
    better.check_in,
    better.nights,
    better.party,
    better.currency,
    format(
        'Room {} costs {:,.2f} {}, and room {} costs {:,.2f}, though room {} is the dearer one in {} of {} stays.',
        sized.better_room_id,
        sized.total,
        better.currency,
        sized.lesser_room_id,
        sized.lesser_total,
        sized.better_room_id,
        sized.stays_dearer,
        sized.stays_compared
    ) AS finding,
    list_transform(
        evidence.stays,
        LAMBDA stay: mart.observation(
            'better_room',
            better.source,
            better.property_id,
            stay['better_key'],
            better.seen_sweep_id,
            stay['better_search_id'],
            stay['better_offer_no']
        )
    )
    || list_transform(
        evidence.stays,
        LAMBDA stay: mart.observation(
            'lesser_room',
            better.source,
            better.property_id,
            stay['lesser_key'],
            better.seen_sweep_id,
            stay['lesser_search_id'],
            stay['lesser_offer_no']
        )
    ) AS evidence,
    mart.conversion(NULL, NULL, NULL, NULL) AS fx,
    sized.offer_key,
    better.board_id,
    better.policy_key,
    sized.better_room_id,
    sized.lesser_room_id,
    sized.total AS better_total,
    sized.lesser_total,
    sized.stays_compared,
    sized.stays_dearer
FROM sized
INNER JOIN evidence
    ON
        evidence.property_id = sized.property_id
        AND evidence.terms = sized.terms
        AND evidence.better_room_id = sized.better_room_id
        AND evidence.lesser_room_id = sized.lesser_room_id
-- The rest of what is shown is read of the findings alone.
INNER JOIN state.offer_open AS better
    ON
        better.property_id = sized.property_id
        AND better.offer_key = sized.offer_key
        AND (better.source = 'multi') = sized.is_list
CROSS JOIN ref.analysis AS analysis
WHERE sized.size_pct > analysis.tolerance_pct
