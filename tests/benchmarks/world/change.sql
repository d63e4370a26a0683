-- One row per change of a series of a batch: what began on that night, and the last night before that told of it.
SELECT
    observation.*,
    lag(observation.night) OVER in_time AS night_before
FROM observation
WHERE observation.night < getvariable('known_nights')
WINDOW in_time AS (PARTITION BY observation.series_no ORDER BY observation.night)
QUALIFY
    lag(observation.state) OVER in_time IS DISTINCT FROM observation.state
    -- What was never on sale is not known to be gone.
    AND bool_or(observation.is_offered) OVER in_time
