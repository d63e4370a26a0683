-- One row per cancel penalty of an offer key of a batch in its last detail answer, while its stay lies ahead.
SELECT
    series.property_id,
    series.offer_key,
    series.check_in,
    sweep_id(last_told.night) AS sweep_id,
    policy_penalty.penalty_no,
    policy_penalty.window_hours,
    policy_penalty.penalty_pct,
    policy_penalty.penalty_nights,
    policy_penalty.is_refundable,
    free_cancel_until(series.source, series.check_in, policy_penalty.window_hours) AS start_at
FROM series
INNER JOIN (
    SELECT
        series_no,
        max(night) AS night
    FROM observation
    WHERE is_offered AND night < getvariable('known_nights')
    GROUP BY series_no
) AS last_told ON last_told.series_no = series.series_no
INNER JOIN policy_penalty ON policy_penalty.policy_key = series.policy_key
WHERE series.source = 'detail' AND series.check_in > day_of(getvariable('known_nights') - 1)
