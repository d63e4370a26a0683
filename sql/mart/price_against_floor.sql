-- One row per source and like-for-like key of a selling price: its latest price against the floor that it must keep.
-- floor_currency: ISO 4217 code of floor and price_converted; NULL: no floor to compare with.
-- price_converted: price in floor_currency, at the reference rate of the day that saw the floor, to its minor unit.
-- match_grade: By how complete the key of the price is: `exact` (room, board, policy), `board_family` or `cheapest`.
-- board_family: a board is given, and stands for its family; cheapest: none is.
-- offers: Hotel-only offers on sale that the price may be of.
-- offers_without_floor: Offers of these that state no floor.
-- floor: The lowest floor of them, in floor_currency: the one that the price must keep whichever offer it is of.
-- below_floor: floor - price_converted, in floor_currency.
-- below_floor_pct: below_floor in percent of floor.
-- tolerance: How far the price may lie below the floor, in floor_currency.
-- days_apart: Days from observed_at to the last sighting of the offer; below 0: the price is the younger one.
-- verdict: `breach`, `kept`, or why nothing can be said: `none_stated`, `outdated`, `no_rate`, `no_offer`, and others.
-- none_stated: it may be of an offer without a floor. outdated: price and floor are further apart than price_days.
-- no_offer: none like it was read. not_hotel: floors do not bind packages. several_rooms: a floor is of one room.
-- rate: Units of floor_currency for one currency; NULL: they are the same.
-- rate_date: Business day that the rate was set for, the older one of the two currencies; NULL: no rate was needed.
-- floor_offer_key: Offer key of the offer with that floor.
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

-- Lists cover all that is asked about; a price is held against detail answers where its property is asked about in
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

-- What the price may be of, in the currency of the price wherever it was asked for in it.
candidate AS (
    SELECT
        keyed.input_id,
        keyed.line_no,
        keyed.match_grade,
        headroom.*,
        rank() OVER (
            PARTITION BY keyed.input_id, keyed.line_no, headroom.source
            ORDER BY headroom.currency = keyed.currency DESC, headroom.currency ASC
        ) AS currency_rank
    FROM keyed
    INNER JOIN mart.floor_headroom AS headroom
        ON
            headroom.property_id = keyed.property_id
            AND headroom.market = keyed.market
            AND headroom.check_in = keyed.check_in
            AND headroom.nights = keyed.nights
            AND headroom.party = keyed.party
    WHERE
        keyed.product_type = 'Hotel'
        AND headroom.currency IS NOT NULL
        -- What could not be read may have the lower floor. Of a list, one product is all that has the exact key.
        AND (headroom.is_whole OR (headroom.source = 'multi' AND keyed.match_grade = 'exact'))
        -- A floor is of one room; a price for a party of several rooms is of all of them together.
        AND NOT contains(keyed.party, '+')
        AND (keyed.room_id IS NULL OR headroom.room_id = keyed.room_id)
        AND (keyed.policy_key IS NULL OR headroom.policy_key = keyed.policy_key)
        AND CASE keyed.match_grade
            WHEN 'exact' THEN headroom.board_id = keyed.board_id
            WHEN 'board_family' THEN headroom.board_family = keyed.family
            ELSE TRUE
        END
),

lowest AS (
    SELECT
        candidate.input_id,
        candidate.line_no,
        candidate.source,
        any_value(candidate.currency) AS floor_currency,
        count(*) AS offers,
        count(*) FILTER (WHERE candidate.floor IS NULL) AS offers_without_floor,
        min(candidate.floor) AS floor,
        arg_min(
            {
                'offer_key': candidate.offer_key,
                'total': candidate.total,
                'last_seen_at': candidate.last_seen_at,
                'seen_sweep_id': candidate.seen_sweep_id,
                'seen_search_id': candidate.seen_search_id,
                'seen_offer_no': candidate.seen_offer_no
            },
            (candidate.floor, candidate.offer_key)
        ) FILTER (WHERE candidate.floor IS NOT NULL) AS kept_by
    FROM candidate
    WHERE candidate.currency_rank = 1
    GROUP BY candidate.input_id, candidate.line_no, candidate.source
),

priced AS (
    SELECT
        source.source,
        keyed.*,
        lowest.* EXCLUDE (input_id, line_no, source), -- noqa: RF02
        unit.minor_unit,
        CASE WHEN lowest.floor_currency <> keyed.currency THEN here.rate::DOUBLE / there.rate::DOUBLE END AS rate,
        CASE WHEN lowest.floor_currency <> keyed.currency THEN least(here.rate_date, there.rate_date) END AS rate_date,
        CASE
            WHEN lowest.floor_currency = keyed.currency THEN keyed.price
            ELSE
                round(
                    keyed.price::DOUBLE * here.rate::DOUBLE / there.rate::DOUBLE, coalesce(unit.minor_digits, 2)
                )::DECIMAL(18, 4)
        END AS price_converted,
        date_diff('second', keyed.observed_at, lowest.kept_by.last_seen_at) / 86400.0 AS days_apart
    FROM keyed
    INNER JOIN source ON source.input_id = keyed.input_id AND source.line_no = keyed.line_no
    LEFT JOIN lowest
        ON
            lowest.input_id = keyed.input_id
            AND lowest.line_no = keyed.line_no
            AND lowest.source = source.source
    LEFT JOIN mart.fx_of_sweep AS here
        ON
            here.sweep_id = lowest.kept_by.seen_sweep_id
            AND here.currency = lowest.floor_currency
    LEFT JOIN mart.fx_of_sweep AS there
        ON
            there.sweep_id = lowest.kept_by.seen_sweep_id
            AND there.currency = keyed.currency
    LEFT JOIN ref.currency AS unit ON unit.currency = lowest.floor_currency
),

held AS (
    SELECT
        priced.* EXCLUDE (minor_unit), -- noqa: RF02
        mart.tolerance(priced.floor, analysis.tolerance_pct, priced.minor_unit) AS tolerance,
        CASE
            WHEN priced.product_type <> 'Hotel' THEN 'not_hotel'
            WHEN contains(priced.party, '+') THEN 'several_rooms'
            WHEN priced.offers IS NULL THEN 'no_offer'
            WHEN priced.offers_without_floor > 0 THEN 'none_stated'
            WHEN priced.price_converted IS NULL THEN 'no_rate'
            WHEN abs(priced.days_apart) > analysis.price_days THEN 'outdated'
            WHEN priced.floor - priced.price_converted > tolerance THEN 'breach' -- noqa: RF02
            ELSE 'kept'
        END AS verdict
    FROM priced
    CROSS JOIN ref.analysis AS analysis
)

SELECT
    held.source,
    held.property_id,
    held.market,
    held.product_type,
    held.check_in,
    held.nights,
    held.party,
    held.room_id,
    held.board_id,
    held.policy_key,
    held.channel,
    held.currency,
    held.price,
    held.observed_at,
    held.match_grade,
    held.verdict,
    coalesce(held.offers, 0) AS offers,
    coalesce(held.offers_without_floor, 0) AS offers_without_floor,
    held.floor_currency,
    held.floor,
    held.price_converted,
    held.tolerance,
    CASE WHEN held.verdict IN ('breach', 'kept') THEN (held.floor - held.price_converted)::DECIMAL(18, 4) END
        AS below_floor,
    100 * below_floor::DOUBLE / held.floor::DOUBLE AS below_floor_pct, -- noqa: RF02
    held.days_apart,
    held.rate,
    held.rate_date,
    held.kept_by.offer_key AS floor_offer_key,
    held.kept_by.seen_sweep_id,
    held.kept_by.seen_search_id,
    held.kept_by.seen_offer_no,
    held.input_id,
    held.line_no
FROM held
