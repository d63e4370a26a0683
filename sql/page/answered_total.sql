-- One row per operation of the last published sweep: its answered cells, by status.
SELECT
    operation,
    count(*) FILTER (WHERE mart.is_answered(status)) AS answered,
    count(*) FILTER (WHERE status = 'offered') AS offered,
    count(*) FILTER (WHERE status = 'no_offer') AS no_offer,
    count(*) FILTER (WHERE status = 'absent') AS absent
FROM mart.cell_latest
WHERE
    sweep_id = (SELECT max_by(sweep.sweep_id, sweep.started_at) FROM mart.sweep)
    AND is_within(property_id, market, check_in)
GROUP BY operation
ORDER BY operation
