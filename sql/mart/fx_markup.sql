-- One row per source, offer and currency that was also answered in another currency: its price at the reference rate.
-- The same property, room, board, policy, stay and market, seen in two currencies in one sweep. It is unknown which of
-- them the supplier converts from: the base is the euro wherever it was requested, else the first currency in
-- alphabetical order, so that a pair of currencies has the same direction throughout the lake.
-- currency: ISO 4217 code of the other currency.
-- base_currency: ISO 4217 code of the base currency.
-- total: Total in currency.
-- base_total: Total in base_currency.
-- base_converted: base_total in currency, at the reference rate of the day of the sweep, rounded to its minor unit.
-- markup: total - base_converted, in currency; > 0: dearer than at the reference rate.
-- markup_pct: markup in percent of base_converted; > 0: the supplier's rate is above the reference rate.
-- lasting_pct: Distance of total from the range of reference rates of the last eight days, in percent; 0: within it.
-- rounding: Part of markup that rounding can explain, in currency: one step of total plus one of base_total, converted.
-- supplier_rate: Units of currency per unit of base_currency, from the two totals.
-- reference_rate: Units of currency per unit of base_currency, from the reference rates.
-- rate_date: Business day of the reference rate: the older of the two currencies' days.
-- base_offer_key: Offer key of the offer in base_currency.
-- base_search_id: Search of its last observation in base_currency.
-- base_offer_no: Number of the offer in that observation.
-- A step is one unit of money where both totals are in whole units, or are discounted from whole prices before
-- promotions; else the minor unit. A full step, not half of one: some prices are rounded up, and some twice.
WITH several AS (
    SELECT
        offer.source,
        offer.property_id,
        offer.market
    FROM mart.offer_latest AS offer
    GROUP BY offer.source, offer.property_id, offer.market
    HAVING min(offer.currency) < max(offer.currency)
),

rated AS (
    SELECT
        offer.*,
        rate.rate,
        rate.rate_date,
        rate.lowest_rate,
        rate.highest_rate,
        offer.total % 1 = 0 OR coalesce(offer.pre_promo_total % 1 = 0, FALSE) AS is_in_units,
        coalesce(unit.minor_unit, 0.01) AS minor_unit
    FROM mart.comparable_offer AS offer
    SEMI JOIN several
        ON
            several.source = offer.source
            AND several.property_id = offer.property_id
            AND several.market = offer.market
    INNER JOIN mart.fx_of_sweep AS rate ON rate.sweep_id = offer.seen_sweep_id AND rate.currency = offer.currency
    LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
    WHERE offer.match_grade = 'exact'
),

base AS (
    SELECT
        rated.source,
        rated.property_id,
        rated.market,
        rated.product_type,
        rated.match_key,
        arg_min(
            {
                'offer_key': rated.offer_key,
                'currency': rated.currency,
                'total': rated.total,
                'rate': rated.rate,
                'rate_date': rated.rate_date,
                'lowest_rate': rated.lowest_rate,
                'highest_rate': rated.highest_rate,
                'is_in_units': rated.is_in_units,
                'minor_unit': rated.minor_unit,
                'search_id': rated.seen_search_id,
                'offer_no': rated.seen_offer_no
            },
            (rated.currency <> 'EUR', rated.currency, rated.offer_key)
        ) AS first
    FROM rated
    GROUP BY rated.source, rated.property_id, rated.market, rated.product_type, rated.match_key
    HAVING min(rated.currency) < max(rated.currency)
)

SELECT
    rated.source,
    rated.offer_key,
    base.first.offer_key AS base_offer_key,
    rated.cell_key,
    rated.property_id,
    rated.market,
    rated.product_type,
    rated.check_in,
    rated.nights,
    rated.party,
    rated.room_no,
    rated.room_id,
    rated.board_id,
    rated.policy_key,
    rated.currency,
    base.first.currency AS base_currency,
    rated.total,
    base.first.total AS base_total,
    mart.converted(base.first.total, rated.rate, base.first.rate, rated.minor_unit) AS base_converted,
    (rated.total - base_converted)::DECIMAL(18, 4) AS markup,
    100 * markup::DOUBLE / base_converted::DOUBLE AS markup_pct,
    rated.total::DOUBLE / base.first.total::DOUBLE AS supplier_rate,
    rated.rate::DOUBLE / base.first.rate::DOUBLE AS reference_rate,
    100 * (
        greatest(supplier_rate / (rated.highest_rate::DOUBLE / base.first.lowest_rate::DOUBLE) - 1, 0)
        + least(supplier_rate / (rated.lowest_rate::DOUBLE / base.first.highest_rate::DOUBLE) - 1, 0)
    ) AS lasting_pct,
    try_cast(
        CASE
            WHEN rated.is_in_units AND base.first.is_in_units THEN 1 + reference_rate
            ELSE rated.minor_unit + base.first.minor_unit * reference_rate
        END AS DECIMAL(18, 4)
    ) AS rounding,
    least(rated.rate_date, base.first.rate_date) AS rate_date,
    rated.seen_sweep_id,
    rated.seen_search_id,
    rated.seen_offer_no,
    base.first.search_id AS base_search_id,
    base.first.offer_no AS base_offer_no
FROM rated
INNER JOIN base
    ON
        base.source = rated.source
        AND base.property_id = rated.property_id
        AND base.market = rated.market
        AND base.product_type = rated.product_type
        AND base.match_key = rated.match_key
WHERE rated.currency <> base.first.currency
