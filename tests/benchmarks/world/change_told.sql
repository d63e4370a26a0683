-- One row per change that began on the night `told_night`: a row of the lake's table `offer_change`.
SELECT
    began.*,
    began.began_sweep_id AS sweep_id,
    began.valid_from AS changed_at
FROM kept.interval AS began
WHERE began.night = getvariable('told_night')
