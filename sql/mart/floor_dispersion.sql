-- One row per source, hotel-only offer, currency and whether floors were converted: its floors in two or more markets.
-- Floors in one currency are compared as stated. If some markets of a property state floors in a currency other than
-- that of most, a second row compares all of them in the currency of most, with the others converted at the reference
-- rate of the day of the sweep. That dispersion includes the supplier's mark-up on the rate, so never add up the rows.
-- is_converted: Whether any of its floors was converted.
-- markets: Number of markets whose floors are compared.
-- markets_converted: Number of compared markets whose floors were converted.
-- lowest_floor: Lowest floor, in currency.
-- highest_floor: Highest floor, in currency.
-- lowest_market: Market with the lowest floor; the first in alphabetical order if several have it.
-- highest_market: Market with the highest floor; the first in alphabetical order if several have it.
-- dispersion_pct: 100 x (highest_floor - lowest_floor) / lowest_floor.
WITH stated AS (
    SELECT DISTINCT
        offer.source,
        offer.property_id,
        offer.market,
        offer.currency
    FROM mart.offer_latest AS offer
    WHERE
        offer.product_type = 'Hotel'
        AND offer.floor > 0
        AND offer.currency IS NOT NULL
),

-- The currency in which most markets of a property state floors, and the markets that use another one.
common AS (
    SELECT
        by_currency.source,
        by_currency.property_id,
        arg_min(by_currency.currency, (-by_currency.markets, by_currency.currency)) AS currency
    FROM (
        SELECT
            stated.source,
            stated.property_id,
            stated.currency,
            count(*) AS markets
        FROM stated
        GROUP BY stated.source, stated.property_id, stated.currency
    ) AS by_currency
    GROUP BY by_currency.source, by_currency.property_id
    HAVING count(*) > 1
),

other AS (
    SELECT
        stated.source,
        stated.property_id,
        stated.market,
        min(stated.currency) AS currency
    FROM stated
    INNER JOIN common ON common.source = stated.source AND common.property_id = stated.property_id
    GROUP BY stated.source, stated.property_id, stated.market
    HAVING NOT bool_or(stated.currency = common.currency)
),

converted AS (
    SELECT
        offer.* EXCLUDE (currency, floor),
        common.currency,
        other.market IS NOT NULL AS is_other,
        CASE
            WHEN other.market IS NULL THEN offer.floor
            ELSE mart.converted(offer.floor, there.rate, here.rate, unit.minor_unit)
        END AS floor
    FROM mart.comparable_offer AS offer
    INNER JOIN common ON common.source = offer.source AND common.property_id = offer.property_id
    SEMI JOIN other AS somewhere
        ON
            somewhere.source = offer.source
            AND somewhere.property_id = offer.property_id
    LEFT JOIN other
        ON
            other.source = offer.source
            AND other.property_id = offer.property_id
            AND other.market = offer.market
    INNER JOIN mart.fx_of_sweep AS here ON here.sweep_id = offer.seen_sweep_id AND here.currency = offer.currency
    INNER JOIN mart.fx_of_sweep AS there ON there.sweep_id = offer.seen_sweep_id AND there.currency = common.currency
    LEFT JOIN ref.currency AS unit ON unit.currency = common.currency
    WHERE
        offer.match_grade = 'exact'
        AND offer.product_type = 'Hotel'
        AND offer.floor > 0
        AND offer.currency = coalesce(other.currency, common.currency)
),

compared AS (
    SELECT
        offer.*,
        FALSE AS is_converted,
        FALSE AS is_other
    FROM mart.comparable_offer AS offer
    WHERE
        offer.match_grade = 'exact'
        AND offer.product_type = 'Hotel'
        AND offer.floor > 0

    UNION ALL BY NAME

    SELECT
        converted.*,
        TRUE AS is_converted
    FROM converted
),

grouped AS (
    SELECT
        compared.source,
        compared.property_id,
        any_value(compared.check_in) AS check_in,
        any_value(compared.nights) AS nights,
        any_value(compared.party) AS party,
        any_value(compared.room_no) AS room_no,
        any_value(compared.room_id) AS room_id,
        any_value(compared.board_id) AS board_id,
        any_value(compared.policy_key) AS policy_key,
        compared.currency,
        compared.is_converted,
        any_value(compared.seen_sweep_id) AS seen_sweep_id,
        -- Not count(DISTINCT): it would aggregate all rows once more for each of the two counts.
        list_unique(list(compared.market))::BIGINT AS markets,
        coalesce(list_unique(list(compared.market) FILTER (WHERE compared.is_other)), 0)::BIGINT AS markets_converted,
        -- Of equal floors, the first market. A floor and its market in one aggregate: each one more takes time.
        min({ 'floor': compared.floor, 'market': compared.market }) AS lowest,
        min({ 'less': -compared.floor, 'market': compared.market }) AS highest
    FROM compared
    GROUP BY compared.source, compared.property_id, compared.match_key, compared.currency, compared.is_converted
    HAVING
        min(compared.market) < max(compared.market)
        AND (NOT compared.is_converted OR bool_or(compared.is_other))
)

SELECT
    grouped.source,
    grouped.property_id,
    grouped.check_in,
    grouped.nights,
    grouped.party,
    grouped.room_no,
    grouped.room_id,
    grouped.board_id,
    grouped.policy_key,
    grouped.currency,
    grouped.is_converted,
    grouped.seen_sweep_id,
    grouped.markets,
    grouped.markets_converted,
    grouped.lowest['floor'] AS lowest_floor,
    (-grouped.highest['less'])::DECIMAL(18, 4) AS highest_floor,
    grouped.lowest['market'] AS lowest_market,
    grouped.highest['market'] AS highest_market,
    100 * (highest_floor - lowest_floor)::DOUBLE / lowest_floor::DOUBLE AS dispersion_pct
FROM grouped
