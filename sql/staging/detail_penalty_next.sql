-- One row per cancellation penalty of an offer key in its last detail answer after this sweep, if its stay lies ahead.
SELECT
    observed.property_id,
    observed.offer_key,
    observed.check_in,
    sweep.sweep_id,
    penalty.penalty_no,
    penalty.window_hours,
    penalty.penalty_pct,
    penalty.penalty_nights,
    penalty.is_refundable,
    penalty.start_at,
    penalty.end_at,
    penalty.amount
FROM night.offer_observed AS observed
CROSS JOIN night.sweep AS sweep
INNER JOIN sweep_files.penalty AS penalty
    ON
        penalty.search_id = observed.search_id
        AND penalty.offer_no = observed.offer_no
WHERE observed.source = 'detail'

UNION ALL BY NAME

SELECT before.*
FROM state.detail_penalty AS before
CROSS JOIN night.sweep AS sweep
ANTI JOIN night.offer_observed AS observed
    ON
        observed.source = 'detail'
        AND observed.property_id = before.property_id
        AND observed.offer_key = before.offer_key
WHERE before.check_in > sweep.snapshot_date
