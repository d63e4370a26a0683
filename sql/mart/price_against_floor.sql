-- One row per source and like-for-like key of a selling price: its latest price compared with the floor in force.
-- currency: ISO 4217 code of price.
-- room_id: The supplier's room id; NULL: not given, so it may be any room.
-- board_id: Board basis id; NULL: not given.
-- policy_key: Hash of the cancellation penalties, as in offer; NULL: not given.
-- floor_currency: ISO 4217 code of floor and price_converted; NULL: no floor to compare with.
-- currency_basis: `same`, or `reference_rate`: the price was converted; NULL: no floor to compare with.
-- price_converted: price in floor_currency, at the reference rate of the day of observed_at, rounded to its minor unit.
-- match_grade: How complete the key of the price is: `exact` (room, board and policy), `board_family` or `cheapest`.
-- `board_family`: a board is given, and represents its family; `cheapest`: none is given.
-- offers: Number of hotel-only offers on sale at observed_at that match the price; several rooms share one room type.
-- offers_without_floor: Number of matching offers that state no floor.
-- floor: The lower of floor_before and floor_next, in floor_currency: the floor at observed_at where they are equal.
-- below_floor: floor - price_converted, in floor_currency; > 0: the price is below the floor.
-- below_floor_pct: below_floor in percent of floor; > 0: the price is below the floor.
-- floor_now: Lowest floor of matching offers on sale now, in floor_currency; NULL: none on sale, or one states none.
-- below_floor_now: floor_now - price_converted, in floor_currency; > 0: selling at this price now would be a breach.
-- tolerance: Amount by which the price may lie below the floor, in floor_currency; larger at a reference rate.
-- days_apart: Days from observed_at to the nearest sighting of floor; < 0: seen before the price; 0: before and after.
-- verdict: `breach`, `kept`, or why it cannot be judged: `none_stated`, `between_floors`, `outdated` and others.
-- `breach`: below the floors of the answers before and after it; `kept`: at or above both, within the tolerance.
-- `between_floors`: below only one of the two, so it is unknown whether it was below the floor in force.
-- `before_answers`: the price is older than the first answer about its cell, so the floor at that time is unknown.
-- `none_stated`: the price may be of an offer without a floor, in the answer before or after it.
-- `outdated`: price and floor, or price and the latest sweep, are more than price_days apart.
-- `no_offer`: no matching offer was read, or not for every room.
-- `stay_began`: check-in is not after the day of the latest sweep, so its offers are no longer compared.
-- `not_hotel`: floors do not bind packages.
-- rate: Units of floor_currency per unit of currency; NULL: the currencies are the same.
-- rate_date: Business day of the rate: the older of the two currencies' days; NULL: no rate was needed.
-- floor_offer_key: Offer key of the offer with that floor; for several rooms, of the first room.
-- floor_began_sweep_id: First sweep that saw floor in the interval of observed_at; seen_sweep_id is the last one.
-- floor_began_search_id: Search of that first sighting.
-- floor_began_offer_no: Number of the offer in the answer to floor_began_search_id.
-- sightings: Observations of each room that show which floor was in force, and the one before if that was higher.
-- sightings_now: Last observations of each room with floor_now; NULL: no floor_now.
-- floor_before: Lowest floor of matching offers in the answer before observed_at; for several rooms, their sum.
-- floor_next: The same in the next answer; equal to floor_before while there is none, or if it was seen again.
WITH matched AS MATERIALIZED (
    FROM mart.price_floor
),

-- The rates of the days on which prices were observed: only these are read from the long series.
observed_day AS (
    SELECT DISTINCT mart.utc(matched.observed_at)::DATE AS on_date
    FROM matched
),

rate_of_day AS (
    SELECT
        observed_day.on_date,
        fx_rate.currency,
        arg_max(fx_rate.rate, (fx_rate.rate_date, fx_rate.input_id)) AS rate,
        max(fx_rate.rate_date) AS rate_date
    FROM observed_day
    INNER JOIN lake.fx_rate AS fx_rate
        ON
            fx_rate.rate_date <= observed_day.on_date
            AND fx_rate.rate_date >= observed_day.on_date - 7
    WHERE fx_rate.currency <> 'EUR'
    GROUP BY observed_day.on_date, fx_rate.currency
),

rate_on AS (
    SELECT rate_of_day.* FROM rate_of_day

    UNION ALL BY NAME

    SELECT
        rate_of_day.on_date,
        'EUR' AS currency,
        1::DECIMAL(18, 8) AS rate,
        max(rate_of_day.rate_date) AS rate_date
    FROM rate_of_day
    GROUP BY rate_of_day.on_date
),

priced AS (
    SELECT
        matched.*,
        unit.minor_unit,
        CASE WHEN matched.floor_currency <> matched.currency THEN here.rate::DOUBLE / there.rate::DOUBLE END AS rate,
        CASE WHEN matched.floor_currency <> matched.currency THEN least(here.rate_date, there.rate_date) END
            AS rate_date,
        CASE
            WHEN matched.floor_currency = matched.currency THEN matched.price
            ELSE mart.converted(matched.price, here.rate, there.rate, unit.minor_unit)
        END AS price_converted,
        matched.kept_by.seconds_apart / 86400.0 AS days_apart,
        matched.observed_at < matched.answered_from AS is_before_answers,
        date_diff(
            'second', matched.observed_at, (SELECT max(sweep.started_at) FROM mart.sweep AS sweep)
        ) / 86400.0 AS price_age_days,
        matched.check_in <= (SELECT max(sweep.snapshot_date) FROM mart.sweep AS sweep) AS has_begun
    FROM matched
    LEFT JOIN rate_on AS here
        ON
            here.on_date = mart.utc(matched.observed_at)::DATE
            AND here.currency = matched.floor_currency
    LEFT JOIN rate_on AS there
        ON
            there.on_date = mart.utc(matched.observed_at)::DATE
            AND there.currency = matched.currency
    LEFT JOIN ref.currency AS unit ON unit.currency = matched.floor_currency
),

held AS (
    SELECT
        priced.* EXCLUDE (minor_unit),
        -- A floor converted by the supplier may be off by its mark-up, which a reference rate does not show.
        CASE
            WHEN priced.floor_currency = priced.currency THEN 'same'
            WHEN priced.floor_currency IS NOT NULL THEN 'reference_rate'
        END AS currency_basis,
        mart.tolerance_of(currency_basis, analysis.tolerance_pct, analysis.reference_rate_pct)
            AS allowed_pct,
        mart.tolerance(priced.floor, allowed_pct, priced.minor_unit) AS tolerance,
        greatest(priced.floor_before, priced.floor_next) AS higher_floor,
        CASE
            WHEN priced.product_type <> 'Hotel' THEN 'not_hotel'
            WHEN priced.has_begun THEN 'stay_began'
            WHEN coalesce(priced.offers, 0) = 0 THEN 'no_offer'
            WHEN priced.offers_without_floor > 0 OR priced.next_without_floor > 0 THEN 'none_stated'
            WHEN priced.price_converted IS NULL THEN 'no_rate'
            WHEN abs(priced.days_apart) > analysis.price_days THEN 'outdated'
            WHEN priced.price_age_days > analysis.price_days THEN 'outdated'
            WHEN priced.is_before_answers THEN 'before_answers'
            WHEN priced.floor - priced.price_converted > tolerance THEN 'breach'
            WHEN
                higher_floor - priced.price_converted
                > mart.tolerance(higher_floor, allowed_pct, priced.minor_unit)
                THEN 'between_floors'
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
    100 * below_floor::DOUBLE / held.floor::DOUBLE AS below_floor_pct,
    held.floor_now,
    (held.floor_now - held.price_converted)::DECIMAL(18, 4) AS below_floor_now,
    held.days_apart,
    held.rate,
    held.rate_date,
    held.kept_by.first.offer_key AS floor_offer_key,
    held.kept_by.first.began_sweep_id AS floor_began_sweep_id,
    held.kept_by.first.began_search_id AS floor_began_search_id,
    held.kept_by.first.began_offer_no AS floor_began_offer_no,
    held.kept_by.first.seen_sweep_id,
    held.kept_by.first.seen_search_id,
    held.kept_by.first.seen_offer_no,
    held.input_id,
    held.line_no,
    held.kept_by.sightings,
    held.sightings_now,
    held.currency_basis,
    held.floor_before,
    held.floor_next
FROM held
