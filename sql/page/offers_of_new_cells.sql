-- One row: offers first seen in the last sweep, in cells that no earlier sweep answered.
WITH night AS (
    SELECT
        max(sweep.started_at) AS started_at,
        max_by(sweep.sweep_id, sweep.started_at) AS sweep_id
    FROM mart.sweep
),

known AS (
    SELECT history.cell_key
    FROM mart.cell_history AS history
    CROSS JOIN night
    WHERE history.known_from < night.started_at
)

SELECT count(*) AS offers
FROM mart.offer_latest AS offer
INNER JOIN night ON night.sweep_id = offer.began_sweep_id
ANTI JOIN known ON known.cell_key = offer.cell_key
WHERE offer.change = 'first'
