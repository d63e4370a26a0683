-- One row per operation, market, product type, number of rooms and lead days of this sweep: its cells by status.
SELECT
    any_value(sweep.sweep_id) AS sweep_id,
    any_value(sweep.snapshot_date) AS snapshot_date,
    cell.operation,
    cell.market,
    cell.product_type,
    length(cell.party) - length(replace(cell.party, '+', '')) + 1 AS rooms,
    date_diff('day', sweep.snapshot_date, cell.check_in) AS lead_days,
    count(*) AS planned,
    count(*) FILTER (WHERE cell.status = 'offered') AS offered,
    count(*) FILTER (WHERE cell.status = 'no_offer' AND cell.code = 1023) AS no_offer_1023,
    count(*) FILTER (WHERE cell.status = 'no_offer' AND cell.code = 1024) AS no_offer_1024,
    count(*) FILTER (WHERE cell.status = 'no_offer' AND cell.code = 1025) AS no_offer_1025,
    count(*) FILTER (WHERE cell.status = 'no_offer' AND cell.code = 1026) AS no_offer_1026,
    count(*) FILTER (
        WHERE cell.status = 'no_offer' AND (cell.code IS NULL OR cell.code NOT BETWEEN 1023 AND 1026)
    ) AS no_offer_other,
    count(*) FILTER (WHERE cell.status = 'absent') AS absent,
    count(*) FILTER (WHERE cell.status = 'rejected') AS rejected,
    count(*) FILTER (WHERE cell.status = 'failed') AS failed,
    count(*) FILTER (WHERE cell.status = 'not_swept') AS not_swept
FROM night.cell_observed AS cell
CROSS JOIN night.sweep AS sweep
GROUP BY ALL
