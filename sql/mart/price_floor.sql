-- One row per source and like-for-like key of a selling price: its latest price, and the lowest floor that applies.
-- currency: ISO 4217 code of price.
-- family: Board family of board_id; NULL: no board is given.
-- match_grade: How complete the key of the price is: `exact` (room, board and policy), `board_family` or `cheapest`.
-- answered_from: Start of the first sweep that has an answer about its cell; NULL: there is none.
-- floor_currency: ISO 4217 code of floor; NULL: no offer matches the price.
-- offers: Number of hotel-only offers on sale at observed_at that match the price; several rooms share one room type.
-- offers_without_floor: Number of matching offers that state no floor.
-- floor: Lowest floor of the matching offers at observed_at, in floor_currency; for several rooms, their sum.
-- floor_now: Lowest floor of matching offers on sale now, in floor_currency; NULL: none on sale, or one states none.
-- sightings_now: Last observations of each room with floor_now; NULL: no floor_now.
-- kept_by: The offer with that floor (of the first room), and the sightings of it that are nearest to observed_at.
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

-- A price older than the first answer about its cell is shown beside that answer, but not judged.
first_known AS (
    SELECT
        known.input_id,
        known.line_no,
        known.source,
        min(known.valid_from) AS valid_from
    FROM known
    GROUP BY known.input_id, known.line_no, known.source
),

-- Offers that match the price, on sale at that time or now. Those that answers left in doubt for too long are neither.
matching AS (
    SELECT
        known.* EXCLUDE (floor), -- noqa: RF02
        nullif(known.floor, 0) AS floor,
        greatest(known.observed_at, first_known.valid_from) AS judged_at,
        known.valid_from <= judged_at -- noqa: RF02
        AND (known.valid_to IS NULL OR known.valid_to > judged_at) -- noqa: RF02
        AND mart.is_on_sale(known.doubted_since, judged_at, analysis.unobserved_nights) AS is_in_force, -- noqa: RF02
        known.valid_to IS NULL
        AND mart.is_on_sale(
            known.doubted_since,
            (SELECT max(sweep.started_at) FROM mart.sweep AS sweep),
            analysis.unobserved_nights
        ) AS is_now
    FROM known
    INNER JOIN first_known
        ON
            first_known.input_id = known.input_id
            AND first_known.line_no = known.line_no
            AND first_known.source = known.source
    CROSS JOIN ref.analysis AS analysis
    WHERE
        known.is_offered
        AND known.currency IS NOT NULL
        AND (is_in_force OR is_now) -- noqa: RF02
        -- An unreadable offer may have the lower floor. In a list, only one product has the exact key.
        AND (known.is_whole OR (known.source = 'multi' AND known.match_grade = 'exact'))
        AND (known.room_id_wanted IS NULL OR known.room_id = known.room_id_wanted)
        AND (known.policy_key_wanted IS NULL OR known.policy_key = known.policy_key_wanted)
        AND CASE known.match_grade
            WHEN 'exact' THEN known.board_id = known.board_id_wanted
            WHEN 'board_family' THEN known.board_family = known.family
            ELSE TRUE
        END
),

with_floor_then AS (
    SELECT
        matching.*,
        bool_or(matching.is_in_force) OVER (
            PARTITION BY matching.input_id, matching.line_no, matching.source, matching.currency
        ) AS is_currency_then
    FROM matching
),

-- Of those requested at that time, the price's own currency: another one that is requested now has no floor of then.
candidate AS (
    SELECT
        matching.*,
        rank() OVER (
            PARTITION BY matching.input_id, matching.line_no, matching.source
            ORDER BY
                matching.is_currency_then DESC,
                matching.currency = matching.currency_wanted DESC,
                matching.currency ASC
        ) AS currency_rank
    FROM with_floor_then AS matching
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
        min(candidate.floor) FILTER (WHERE candidate.is_in_force) AS floor,
        count(*) FILTER (WHERE candidate.is_now) AS offers_now,
        count(*) FILTER (WHERE candidate.is_now AND candidate.floor IS NULL) AS now_without_floor,
        min(candidate.floor) FILTER (WHERE candidate.is_now) AS floor_now,
        arg_min(
            {
                'property_id': candidate.property_id,
                'offer_key': candidate.offer_key,
                -- Between two sightings of the same floor it is known; elsewhere the nearer sighting counts.
                'seconds_apart': CASE
                    WHEN candidate.last_seen_at < candidate.observed_at
                        THEN date_diff('second', mart.utc(candidate.observed_at), mart.utc(candidate.last_seen_at))
                    WHEN candidate.valid_from > candidate.observed_at
                        THEN date_diff('second', mart.utc(candidate.observed_at), mart.utc(candidate.valid_from))
                    ELSE 0
                END,
                'began_sweep_id': candidate.began_sweep_id,
                'began_search_id': candidate.began_search_id,
                'began_offer_no': candidate.began_offer_no,
                'seen_sweep_id': candidate.seen_sweep_id,
                'seen_search_id': candidate.seen_search_id,
                'seen_offer_no': candidate.seen_offer_no
            },
            (candidate.floor, candidate.offer_key)
        ) FILTER (WHERE candidate.is_in_force AND candidate.floor IS NOT NULL) AS kept_by,
        arg_min(
            mart.observation(
                'floor_now',
                candidate.source,
                candidate.property_id,
                candidate.offer_key,
                candidate.seen_sweep_id,
                candidate.seen_search_id,
                candidate.seen_offer_no
            ),
            (candidate.floor, candidate.offer_key)
        ) FILTER (WHERE candidate.is_now AND candidate.floor IS NOT NULL) AS kept_now
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
        count(*) FILTER (WHERE room.offers_now > 0) = any_value(room.rooms) AS is_now,
        sum(room.offers)::BIGINT AS offers,
        sum(room.offers_without_floor)::BIGINT AS offers_without_floor,
        sum(room.now_without_floor)::BIGINT AS now_without_floor,
        CASE WHEN count(room.floor) = any_value(room.rooms) THEN try_cast(sum(room.floor) AS DECIMAL(18, 4)) END
            AS floor,
        CASE WHEN count(room.floor_now) = any_value(room.rooms) THEN try_cast(sum(room.floor_now) AS DECIMAL(18, 4)) END
            AS floor_now,
        min(room.kept_by.offer_key) AS offer_key,
        arg_max(room.kept_by.seconds_apart, abs(room.kept_by.seconds_apart)) AS seconds_apart,
        arg_min(room.kept_by, room.room_no) AS kept_by,
        list(room.kept_now ORDER BY room.room_no) AS sightings_now,
        list(
            mart.observation(
                'floor',
                room.source,
                room.kept_by.property_id,
                room.kept_by.offer_key,
                room.kept_by.seen_sweep_id,
                room.kept_by.seen_search_id,
                room.kept_by.seen_offer_no
            )
            ORDER BY room.room_no
        )
        -- A price between two sightings rests on both: together they show which floor was in force.
        || coalesce(
            list(
                mart.observation(
                    'floor_began',
                    room.source,
                    room.kept_by.property_id,
                    room.kept_by.offer_key,
                    room.kept_by.began_sweep_id,
                    room.kept_by.began_search_id,
                    room.kept_by.began_offer_no
                )
                ORDER BY room.room_no
            ) FILTER (
                WHERE room.kept_by.seconds_apart >= 0 AND room.kept_by.began_sweep_id <> room.kept_by.seen_sweep_id
            ),
            []
        ) AS sightings
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
        min(room_type.floor) AS floor,
        CASE
            WHEN sum(room_type.now_without_floor) FILTER (WHERE room_type.is_now) = 0
                THEN min(room_type.floor_now)
        END AS floor_now,
        arg_min(room_type.sightings_now, room_type.floor_now) AS sightings_now,
        arg_min(
            {
                'first': room_type.kept_by,
                'seconds_apart': room_type.seconds_apart,
                'sightings': room_type.sightings
            },
            (room_type.floor, room_type.offer_key)
        ) FILTER (WHERE room_type.is_offered AND room_type.floor IS NOT NULL) AS kept_by
    FROM room_type
    GROUP BY room_type.input_id, room_type.line_no, room_type.source
)

SELECT
    source.source,
    keyed.*,
    first_known.valid_from AS answered_from,
    lowest.* EXCLUDE (input_id, line_no, source) -- noqa: RF02
FROM keyed
INNER JOIN source ON source.input_id = keyed.input_id AND source.line_no = keyed.line_no
LEFT JOIN lowest
    ON
        lowest.input_id = keyed.input_id
        AND lowest.line_no = keyed.line_no
        AND lowest.source = source.source
LEFT JOIN first_known
    ON
        first_known.input_id = keyed.input_id
        AND first_known.line_no = keyed.line_no
        AND first_known.source = source.source
