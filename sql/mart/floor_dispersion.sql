-- One row per source, hotel-only offer, currency and whether floors were converted, seen of two markets in one sweep.
-- Floors of one currency are compared as they are. Where markets state floors of an offer in several currencies, there
-- is one more row: of all of them, in the currency that most markets state it in, at the reference rate of the day of
-- the sweep. What a supplier adds to that rate is then part of the dispersion, so the two are never one number.
-- is_converted: Whether a floor of it was converted.
-- markets: Markets whose floor is compared.
-- markets_converted: Markets of these whose floor was converted.
-- lowest_floor: Lowest of the floors, in currency.
-- highest_floor: Highest of the floors, in currency.
-- lowest_market: Market with the lowest floor, the first by name among equals.
-- highest_market: Market with the highest floor, the first by name among equals.
-- dispersion_pct: 100 x (highest_floor - lowest_floor) / lowest_floor.
-- Few properties are seen in several currencies: only of those more is read than of the others.
WITH several AS (
    SELECT
        offer.source,
        offer.property_id
    FROM mart.offer_latest AS offer
    WHERE offer.product_type = 'Hotel' AND offer.floor > 0
    GROUP BY offer.source, offer.property_id
    HAVING min(offer.currency) < max(offer.currency)
),

counted AS (
    SELECT
        offer.*,
        count(*) OVER (
            PARTITION BY offer.source, offer.property_id, offer.match_key, offer.currency
        ) AS times_stated
    FROM mart.comparable_offer AS offer
    SEMI JOIN several
        ON
            several.source = offer.source
            AND several.property_id = offer.property_id
    WHERE
        offer.match_grade = 'exact'
        AND offer.product_type = 'Hotel'
        AND offer.floor > 0
),

aimed AS (
    SELECT
        counted.*,
        first_value(counted.currency) OVER (
            PARTITION BY counted.source, counted.property_id, counted.match_key
            ORDER BY counted.times_stated DESC, counted.currency ASC
        ) AS common_currency
    FROM counted
),

-- A market that states it in that currency too is not converted.
converted AS (
    SELECT
        aimed.* EXCLUDE (currency, floor, times_stated, common_currency), -- noqa: RF02
        aimed.common_currency AS currency,
        aimed.currency <> aimed.common_currency AS is_other,
        CASE
            WHEN aimed.currency = aimed.common_currency THEN aimed.floor
            ELSE round(aimed.floor::DOUBLE * there.rate::DOUBLE / here.rate::DOUBLE, coalesce(unit.minor_digits, 2))
        END::DECIMAL(18, 4) AS floor
    FROM aimed
    LEFT JOIN mart.fx_of_sweep AS here ON here.sweep_id = aimed.seen_sweep_id AND here.currency = aimed.currency
    LEFT JOIN mart.fx_of_sweep AS there
        ON
            there.sweep_id = aimed.seen_sweep_id
            AND there.currency = aimed.common_currency
    LEFT JOIN ref.currency AS unit ON unit.currency = aimed.common_currency
    WHERE aimed.currency = aimed.common_currency OR there.rate / here.rate > 0
    QUALIFY
        row_number() OVER (
            PARTITION BY aimed.source, aimed.property_id, aimed.match_key, aimed.market
            ORDER BY is_other ASC, aimed.currency ASC, aimed.floor ASC -- noqa: RF02
        ) = 1
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
)

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
    count(DISTINCT compared.market) AS markets,
    count(DISTINCT compared.market) FILTER (WHERE compared.is_other) AS markets_converted,
    min(compared.floor) AS lowest_floor,
    max(compared.floor) AS highest_floor,
    arg_min(compared.market, (compared.floor, compared.market)) AS lowest_market,
    arg_min(compared.market, (-compared.floor, compared.market)) AS highest_market,
    100 * (highest_floor - lowest_floor)::DOUBLE / lowest_floor::DOUBLE AS dispersion_pct -- noqa: RF02
FROM compared
GROUP BY compared.source, compared.property_id, compared.match_key, compared.currency, compared.is_converted
HAVING
    count(DISTINCT compared.market) > 1
    AND (NOT compared.is_converted OR bool_or(compared.is_other))
