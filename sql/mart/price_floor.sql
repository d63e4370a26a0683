-- One row per source and like-for-like key of a selling price: its latest price, and the lowest floor that applies.
-- currency: ISO 4217 code of price.
-- family: Board family of board_id; NULL: no board is given.
-- match_grade: How complete the key of the price is: `exact` (room, board and policy), `board_family` or `cheapest`.
-- answered_from: Start of the first sweep that has an answer about its cell; NULL: there is none.
-- floor_currency: ISO 4217 code of floor; NULL: no offer matches the price.
-- offers: Number of hotel-only offers on sale at observed_at that match the price; several rooms share one room type.
-- offers_without_floor: Number of matching offers that state no floor.
-- next_without_floor: Number of matching offers of the next answer that state no floor.
-- floor_before: Lowest floor of matching offers in the answer before observed_at; for several rooms, their sum.
-- floor_next: The same in the next answer; equal to floor_before while there is none, or if it was seen again.
-- floor: The lower of floor_before and floor_next, in floor_currency: the floor at observed_at where they are equal.
-- floor_now: Lowest floor of matching offers on sale now, in floor_currency; NULL: none on sale, or one states none.
-- sightings_now: Last observations of each room with floor_now; NULL: no floor_now.
-- kept_by: The offer with floor (of the first room), and the sightings that are nearest to observed_at.
WITH latest AS (
    SELECT price.*
    FROM mart.selling_price AS price
    QUALIFY
        row_number() OVER (
            PARTITION BY
                price.property_id,
                price.market,
                price.product_type,
                price.check_in,
                price.nights,
                price.party,
                price.currency,
                price.room_id,
                price.board_id,
                price.policy_key,
                price.channel
            ORDER BY price.observed_at DESC
        ) = 1
),

keyed AS (
    SELECT
        latest.*,
        coalesce(board.family, CASE WHEN latest.board_id IS NOT NULL THEN 'other' END) AS family,
        CASE
            WHEN latest.room_id IS NOT NULL AND latest.board_id IS NOT NULL AND latest.policy_key IS NOT NULL
                THEN 'exact'
            WHEN latest.board_id IS NOT NULL THEN 'board_family'
            ELSE 'cheapest'
        END AS match_grade
    FROM latest
    LEFT JOIN ref.board_basis AS board ON board.board_id = latest.board_id
),

-- Lists cover every requested cell; a price is compared with detail answers only if its property is searched in
-- detail.
source AS (
    SELECT
        keyed.input_id,
        keyed.line_no,
        'multi' AS source
    FROM keyed

    UNION ALL

    SELECT
        keyed.input_id,
        keyed.line_no,
        'detail' AS source
    FROM keyed
    SEMI JOIN state.cell AS cell
        ON
            cell.operation = 'single'
            AND cell.property_id = keyed.property_id
            AND cell.market = keyed.market
),

-- What was known of the cells of the prices, except for stays that have begun.
known AS MATERIALIZED (
    SELECT
        keyed.input_id,
        keyed.line_no,
        keyed.match_grade,
        keyed.family,
        keyed.room_id AS room_id_wanted,
        keyed.board_id AS board_id_wanted,
        keyed.policy_key AS policy_key_wanted,
        keyed.currency AS currency_wanted,
        keyed.observed_at,
        len(string_split(keyed.party, '+')) AS rooms,
        CASE WHEN contains(keyed.party, '+') THEN history.room_stay_id ELSE 0 END AS room_no,
        history.source,
        history.property_id,
        history.offer_key,
        history.room_id,
        history.board_id,
        history.board_family,
        history.policy_key,
        history.currency_asked,
        history.currency,
        history.floor,
        history.is_offered,
        history.is_whole,
        history.valid_from,
        history.valid_to,
        history.last_seen_at,
        history.doubted_since,
        history.began_sweep_id,
        history.began_search_id,
        history.began_offer_no,
        history.seen_sweep_id,
        history.seen_search_id,
        history.seen_offer_no
    FROM keyed
    INNER JOIN mart.offer_history AS history
        ON
            history.property_id = keyed.property_id
            AND history.market = keyed.market
            AND history.product_type = keyed.product_type
            AND history.check_in = keyed.check_in
            AND history.nights = keyed.nights
            AND history.party = keyed.party
    WHERE
        keyed.product_type = 'Hotel'
        AND history.ended_by IS DISTINCT FROM 'stay_began'
        AND history.check_in > (SELECT max(sweep.snapshot_date) FROM mart.sweep AS sweep)
),

-- An offer that is new after the first complete answer at or after the price (next_at) is not of the time of the price.
cell_known AS (
    SELECT
        known.input_id,
        known.line_no,
        known.source,
        known.currency_asked,
        min(known.valid_from) AS valid_from,
        min(
            CASE
                WHEN known.valid_from >= known.observed_at THEN known.valid_from
                WHEN known.last_seen_at >= known.observed_at THEN known.last_seen_at
            END
        ) FILTER (WHERE known.is_whole) AS next_at
    FROM known
    GROUP BY known.input_id, known.line_no, known.source, known.currency_asked
),

-- A price older than the first answer about its cell is shown beside that answer, but not judged.
first_known AS (
    SELECT
        cell_known.input_id,
        cell_known.line_no,
        cell_known.source,
        min(cell_known.valid_from) AS valid_from
    FROM cell_known
    GROUP BY cell_known.input_id, cell_known.line_no, cell_known.source
),

-- What was known at that time or later of the offers with the key of the price, and when it was seen last before that.
dated AS (
    SELECT
        known.* EXCLUDE (floor),
        nullif(known.floor, 0) AS floor,
        greatest(known.observed_at, first_known.valid_from) AS judged_at,
        cell_known.next_at,
        lag(known.last_seen_at) OVER (
            PARTITION BY known.input_id, known.line_no, known.source, known.offer_key
            ORDER BY known.valid_from
        ) AS seen_before_at
    FROM known
    INNER JOIN cell_known
        ON
            cell_known.input_id = known.input_id
            AND cell_known.line_no = known.line_no
            AND cell_known.source = known.source
            AND cell_known.currency_asked IS NOT DISTINCT FROM known.currency_asked
    INNER JOIN first_known
        ON
            first_known.input_id = known.input_id
            AND first_known.line_no = known.line_no
            AND first_known.source = known.source
    WHERE
        (known.valid_to IS NULL OR known.valid_to > known.observed_at)
        AND (known.room_id_wanted IS NULL OR known.room_id = known.room_id_wanted)
        AND (known.policy_key_wanted IS NULL OR known.policy_key = known.policy_key_wanted)
        AND CASE known.match_grade
            WHEN 'exact' THEN known.board_id = known.board_id_wanted
            WHEN 'board_family' THEN known.board_family = known.family
            ELSE TRUE
        END
),

-- Offers that match the price, on sale as last answered before it, as next answered, or now. Those that answers left in
-- doubt for too long are none of these. Between two answers, either may have been in force.
matching AS (
    SELECT
        dated.*,
        dated.valid_from <= dated.judged_at
        AND mart.is_on_sale(dated.doubted_since, dated.judged_at, analysis.unobserved_nights) AS is_in_force,
        CASE
            WHEN dated.valid_from <= dated.judged_at
                THEN is_in_force AND (dated.valid_to IS NULL OR dated.last_seen_at >= dated.judged_at)
            ELSE coalesce(
                dated.seen_before_at < dated.judged_at, dated.next_at IS NULL OR dated.valid_from <= dated.next_at
            )
        END AS is_next,
        dated.valid_to IS NULL
        AND mart.is_on_sale(
            dated.doubted_since,
            (SELECT max(sweep.started_at) FROM mart.sweep AS sweep),
            analysis.unobserved_nights
        ) AS is_now,
        {
            'room_no': dated.room_no,
            'property_id': dated.property_id,
            'offer_key': dated.offer_key,
            -- Between two sightings of the same floor it is known; elsewhere the nearer sighting counts.
            'seconds_apart': CASE
                WHEN dated.last_seen_at < dated.observed_at
                    THEN date_diff('second', mart.utc(dated.observed_at), mart.utc(dated.last_seen_at))
                WHEN dated.valid_from > dated.observed_at
                    THEN date_diff('second', mart.utc(dated.observed_at), mart.utc(dated.valid_from))
                ELSE 0
            END,
            'began_sweep_id': dated.began_sweep_id,
            'began_search_id': dated.began_search_id,
            'began_offer_no': dated.began_offer_no,
            'seen_sweep_id': dated.seen_sweep_id,
            'seen_search_id': dated.seen_search_id,
            'seen_offer_no': dated.seen_offer_no
        } AS sighting
    FROM dated
    CROSS JOIN ref.analysis AS analysis
    WHERE
        dated.is_offered
        AND dated.currency IS NOT NULL
        AND (is_in_force OR is_next OR is_now)
        -- An unreadable offer may have the lower floor. In a list, only one product has the exact key.
        AND (dated.is_whole OR (dated.source = 'multi' AND dated.match_grade = 'exact'))
),

with_time AS (
    SELECT
        matching.*,
        max(CASE WHEN matching.is_in_force THEN 2 WHEN matching.is_now THEN 1 ELSE 0 END) OVER (
            PARTITION BY matching.input_id, matching.line_no, matching.source, matching.currency
        ) AS currency_order,
        bool_or(matching.is_in_force <> matching.is_next) OVER (
            PARTITION BY matching.input_id, matching.line_no, matching.source, matching.currency
        ) AS is_moved
    FROM matching
),

-- Of those requested at that time, the price's own currency: another one that is requested now has no floor of then.
candidate AS (
    SELECT
        matching.*,
        rank() OVER (
            PARTITION BY matching.input_id, matching.line_no, matching.source
            ORDER BY
                matching.currency_order DESC,
                matching.currency = matching.currency_wanted DESC,
                matching.currency ASC
        ) AS currency_rank
    FROM with_time AS matching
    WHERE matching.currency_order > 0
),

-- A floor is for one room: the lowest of each requested room, by room type.
room_floor AS (
    SELECT
        candidate.input_id,
        candidate.line_no,
        candidate.source,
        candidate.rooms,
        candidate.room_no,
        candidate.room_id,
        any_value(candidate.currency) AS floor_currency,
        count(*) FILTER (WHERE candidate.is_in_force) AS offers,
        count(*) FILTER (WHERE candidate.is_in_force AND candidate.floor IS NULL) AS offers_without_floor,
        min(candidate.floor) FILTER (WHERE candidate.is_in_force) AS floor_before,
        arg_min(candidate.sighting, (candidate.floor, candidate.offer_key)) FILTER (
            WHERE candidate.is_in_force AND candidate.floor IS NOT NULL
        ) AS kept_before,
        count(*) FILTER (WHERE candidate.is_next) AS offers_next,
        count(*) FILTER (WHERE candidate.is_next AND candidate.floor IS NULL) AS next_without_floor,
        min(candidate.floor) FILTER (WHERE candidate.is_next) AS floor_next,
        arg_min(candidate.sighting, (candidate.floor, candidate.offer_key)) FILTER (
            WHERE candidate.is_next AND candidate.is_moved AND candidate.floor IS NOT NULL
        ) AS kept_next,
        count(*) FILTER (WHERE candidate.is_now) AS offers_now,
        count(*) FILTER (WHERE candidate.is_now AND candidate.floor IS NULL) AS now_without_floor,
        min(candidate.floor) FILTER (WHERE candidate.is_now) AS floor_now,
        arg_min(candidate.sighting, (candidate.floor, candidate.offer_key)) FILTER (
            WHERE candidate.is_now AND candidate.floor IS NOT NULL
        ) AS kept_now
    FROM candidate
    WHERE candidate.currency_rank = 1
    GROUP BY
        candidate.input_id,
        candidate.line_no,
        candidate.source,
        candidate.rooms,
        candidate.room_no,
        candidate.room_id
),

-- All rooms of a party are booked in one room type.
room_type AS (
    SELECT
        room.input_id,
        room.line_no,
        room.source,
        any_value(room.floor_currency) AS floor_currency,
        count(*) FILTER (WHERE room.offers > 0) = any_value(room.rooms) AS is_offered,
        count(*) FILTER (WHERE room.offers_next > 0) = any_value(room.rooms) AS is_next,
        count(*) FILTER (WHERE room.offers_now > 0) = any_value(room.rooms) AS is_now,
        sum(room.offers)::BIGINT AS offers,
        sum(room.offers_without_floor)::BIGINT AS offers_without_floor,
        sum(room.next_without_floor)::BIGINT AS next_without_floor,
        sum(room.now_without_floor)::BIGINT AS now_without_floor,
        CASE
            WHEN count(room.floor_before) = any_value(room.rooms)
                THEN try_cast(sum(room.floor_before) AS DECIMAL(18, 4))
        END AS floor_before,
        CASE
            WHEN count(room.floor_next) = any_value(room.rooms) THEN try_cast(sum(room.floor_next) AS DECIMAL(18, 4))
        END AS floor_next,
        CASE WHEN count(room.floor_now) = any_value(room.rooms) THEN try_cast(sum(room.floor_now) AS DECIMAL(18, 4)) END
            AS floor_now,
        min(room.kept_before.offer_key) AS offer_key,
        min(room.kept_next.offer_key) AS offer_key_next,
        {
            'rooms': list(room.kept_before) FILTER (WHERE room.kept_before IS NOT NULL),
            'seconds_apart': arg_max(room.kept_before.seconds_apart, abs(room.kept_before.seconds_apart))
        } AS kept_before,
        {
            'rooms': list(room.kept_next) FILTER (WHERE room.kept_next IS NOT NULL),
            'seconds_apart': arg_max(room.kept_next.seconds_apart, abs(room.kept_next.seconds_apart))
        } AS kept_next,
        list(room.kept_now) FILTER (WHERE room.kept_now IS NOT NULL) AS kept_now
    FROM room_floor AS room
    -- One of several rooms without a type cannot be grouped with the others.
    WHERE room.rooms = 1 OR (room.room_id IS NOT NULL AND room.room_no BETWEEN 0 AND room.rooms - 1)
    GROUP BY room.input_id, room.line_no, room.source, room.room_id
),

lowest AS (
    SELECT
        room_type.input_id,
        room_type.line_no,
        room_type.source,
        any_value(room_type.floor_currency) AS floor_currency,
        sum(room_type.offers) FILTER (WHERE room_type.is_offered)::BIGINT AS offers,
        sum(room_type.offers_without_floor) FILTER (WHERE room_type.is_offered)::BIGINT AS offers_without_floor,
        sum(room_type.next_without_floor) FILTER (WHERE room_type.is_next)::BIGINT AS next_without_floor,
        min(room_type.floor_before) AS floor_before,
        min(room_type.floor_next) AS floor_next,
        CASE
            WHEN sum(room_type.now_without_floor) FILTER (WHERE room_type.is_now) = 0
                THEN min(room_type.floor_now)
        END AS floor_now,
        arg_min(room_type.kept_now, room_type.floor_now) AS kept_now,
        arg_min(room_type.kept_before, (room_type.floor_before, room_type.offer_key)) FILTER (
            WHERE room_type.is_offered AND room_type.floor_before IS NOT NULL
        ) AS kept_before,
        arg_min(room_type.kept_next, (room_type.floor_next, room_type.offer_key_next)) FILTER (
            WHERE room_type.is_next AND room_type.floor_next IS NOT NULL
        ) AS kept_next
    FROM room_type
    GROUP BY room_type.input_id, room_type.line_no, room_type.source
),

-- A breach lies below both floors; the lower one shows by how much at least.
lower_one AS (
    SELECT
        lowest.* EXCLUDE (kept_before, kept_next, kept_now),
        coalesce(lowest.floor_next < lowest.floor_before, FALSE) AS is_next_lower,
        CASE WHEN is_next_lower THEN lowest.kept_next ELSE lowest.kept_before END AS kept,
        -- In the order of rooms, which is the first field.
        list_sort(struct_extract(kept, 'rooms')) AS rooms,
        CASE WHEN is_next_lower THEN list_sort(lowest.kept_before.rooms) ELSE [] END AS rooms_before,
        list_sort(lowest.kept_now) AS rooms_now
    FROM lowest
)

SELECT
    source.source,
    keyed.*,
    first_known.valid_from AS answered_from,
    lower_one.floor_currency,
    lower_one.offers,
    lower_one.offers_without_floor,
    CASE WHEN lower_one.is_next_lower THEN lower_one.floor_next ELSE lower_one.floor_before END AS floor,
    lower_one.floor_now,
    CASE WHEN lower_one.floor_now IS NOT NULL THEN mart.sightings('floor_now', source.source, lower_one.rooms_now) END
        AS sightings_now,
    CASE
        WHEN lower_one.kept IS NOT NULL
            THEN
                {
                    'first': lower_one.rooms[1],
                    'seconds_apart': lower_one.kept.seconds_apart,
                    'sightings': mart.sightings('floor', source.source, lower_one.rooms)
                    -- A price between two sightings rests on both: together they show which floor was in force.
                    || list_transform(
                        list_filter(
                            lower_one.rooms,
                            LAMBDA room: room['seconds_apart'] >= 0
                            AND room['began_sweep_id'] <> room['seen_sweep_id']
                        ),
                        LAMBDA room: mart.observation(
                            'floor_began',
                            source.source,
                            room['property_id'],
                            room['offer_key'],
                            room['began_sweep_id'],
                            room['began_search_id'],
                            room['began_offer_no']
                        )
                    )
                    || mart.sightings('floor_before', source.source, lower_one.rooms_before)
                }
    END AS kept_by,
    lower_one.floor_before,
    lower_one.floor_next,
    lower_one.next_without_floor
FROM keyed
INNER JOIN source ON source.input_id = keyed.input_id AND source.line_no = keyed.line_no
LEFT JOIN lower_one
    ON
        lower_one.input_id = keyed.input_id
        AND lower_one.line_no = keyed.line_no
        AND lower_one.source = source.source
LEFT JOIN first_known
    ON
        first_known.input_id = keyed.input_id
        AND first_known.line_no = keyed.line_no
        AND first_known.source = source.source
