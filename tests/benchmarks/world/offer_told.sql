-- One row per offer of a batch and night `told_night`: a row of the lake's table `offer`.
SELECT
    sweep_id(observation.night) AS sweep_id,
    cell_night.search_id,
    series.offer_no,
    series.source,
    cell_night.searched_at,
    series.property_id,
    series.market,
    series.product_type,
    series.check_in,
    series.nights,
    series.party,
    series.currency AS currency_asked,
    0 AS room_stay_id,
    series.room_id,
    series.room_name,
    'BAR' AS rate_type,
    product_id(series.offer_key, series.has_passing_product, observation.night) AS product_id,
    series.board_id,
    series.board_name,
    series.board_name AS board_detail,
    series.policy_key,
    promotion.promotion_key,
    series.currency,
    money(observation.total_cents) AS total,
    money(observation.pre_promo_cents) AS pre_promo_total,
    nullif(observation.promotion_pct, 0)::DOUBLE AS discount_pct,
    money(observation.floor_cents) AS floor,
    observation.available_rooms,
    CASE WHEN series.source = 'detail' THEN included_charges(observation.total_cents, series.tax_pct) END
        AS included_charges,
    CASE WHEN series.source = 'detail' THEN money(excluded_cents(series.resort_cents, series.city_cents)) END
        AS excluded_charges,
    CASE WHEN series.source = 'detail' THEN money(series.resort_cents) END AS resort_fee,
    CASE WHEN series.source = 'detail' THEN money(series.city_cents) END AS city_taxes,
    series.refundability,
    series.free_cancel_hours,
    free_cancel_until(series.source, series.check_in, series.free_cancel_hours) AS free_cancel_until
FROM observation
INNER JOIN series ON series.series_no = observation.series_no
INNER JOIN cell_night ON cell_night.cell_no = observation.cell_no AND cell_night.night = observation.night
INNER JOIN promotion ON promotion.promotion_pct = observation.promotion_pct
WHERE observation.is_offered AND observation.night = getvariable('told_night')
