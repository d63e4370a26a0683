-- One row per night but the last: the sweep as the published file lists it, with what it changed.
SELECT
    sweep.*,
    'passed' AS audit,
    0 AS quarantined,
    counted.* EXCLUDE (night) -- noqa: RF02
FROM kept.sweep_told AS sweep
INNER JOIN (
    SELECT
        night,
        count(*) FILTER (WHERE change = 'first') AS offers_first,
        count(*) FILTER (WHERE change = 'value') AS offers_changed,
        count(*) FILTER (WHERE change = 'gone') AS offers_gone,
        count(*) FILTER (WHERE change = 'back') AS offers_back,
        count(*) FILTER (WHERE is_price_change) AS price_changes
    FROM kept.interval
    GROUP BY night
) AS counted ON sweep_id(counted.night) = sweep.sweep_id
