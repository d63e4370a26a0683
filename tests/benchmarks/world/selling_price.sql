-- One row per selling price that a user has loaded: of one property in twenty, each fifth night and the last, half of
-- them for any room.
SELECT
    series.property_id,
    series.market,
    series.product_type,
    series.check_in,
    series.nights,
    series.party,
    series.currency,
    (money(observation.total_cents) * (97 + drawn('margin', series.property_id, 12)) / 100)::DECIMAL(18, 2) AS price,
    started_at(observation.night) AS observed_at,
    CASE WHEN series.batch_no % 2 = 0 THEN series.room_id END AS room_id,
    CASE WHEN series.batch_no % 2 = 0 THEN series.board_id END AS board_id,
    CASE WHEN series.batch_no % 2 = 0 THEN series.policy_key END AS policy_key,
    'own site' AS channel
FROM observation
INNER JOIN series ON series.series_no = observation.series_no
WHERE
    observation.is_offered
    AND (observation.night % 5 = 0 OR observation.night = getvariable('nights') - 1)
    AND series.property_no % 20 = 1
    AND series.source = 'multi'
    AND series.product_type = 'Hotel'
    AND series.party = '2'
    AND series.nights = 2
    AND series.market IN ('DE', 'GB')
    AND (series.market = 'DE' OR series.currency = 'GBP')
QUALIFY
    row_number() OVER (
        PARTITION BY
            series.property_id, series.market, series.check_in, observation.night,
            CASE WHEN series.batch_no % 2 = 0 THEN series.series_no END
        ORDER BY observation.total_cents, series.series_no
    ) = 1
