-- One row per quote that was asked on the last night but one: a row of the lake's table `quote`.
SELECT
    strftime(started_at(observation.night) + INTERVAL 4 HOUR, '%Y%m%dT%H%M%SZ') || '-5eed00' AS run_id,
    (row_number() OVER (ORDER BY series.offer_key) - 1)::INTEGER AS quote_no,
    TRUE AS is_simulated,
    sweep_id(observation.night) AS sweep_id,
    cell_night.search_id,
    series.offer_no,
    series.source,
    series.offer_key,
    series.property_id,
    series.property_id AS sent_property_id,
    series.market,
    series.product_type,
    series.check_in,
    series.nights,
    series.party,
    series.currency AS currency_asked,
    0 AS room_stay_id,
    1 AS rooms,
    series.room_id,
    series.board_id,
    series.policy_key,
    product_id(series.offer_key, series.has_passing_product, observation.night) AS product_id,
    cell_night.searched_at,
    series.currency,
    money(observation.total_cents) AS search_total,
    cell_night.searched_at + INTERVAL 4 HOUR AS intended_at,
    cell_night.searched_at + INTERVAL 4 HOUR AS quoted_at,
    cell_night.searched_at + INTERVAL 4 HOUR AS answered_at,
    14400 AS age_seconds,
    ['matched', 'matched', 'matched', 'raised', 'gone'][1 + drawn('quote', series.offer_key, 5)] AS outcome,
    CASE WHEN outcome = 'gone' THEN 1023 END AS code,
    200 AS http_status,
    outcome <> 'gone' AS is_reservation_possible,
    CASE WHEN outcome <> 'gone' THEN 7000000 + quote_no END AS reservation_id,
    CASE WHEN outcome <> 'gone' THEN series.currency END AS quote_currency,
    CASE outcome
        WHEN 'matched' THEN money(observation.total_cents)
        WHEN 'raised' THEN money(observation.total_cents + 500)
    END AS quote_total
FROM observation
INNER JOIN series ON series.series_no = observation.series_no
INNER JOIN cell_night ON cell_night.cell_no = observation.cell_no AND cell_night.night = observation.night
WHERE
    observation.is_offered
    AND observation.night = greatest(getvariable('nights') - 2, 0)
    AND series.source = 'detail'
    AND drawn('quoted', series.offer_key, 4) = 0
