-- One row per cell of a batch and night: a row of the lake's table `cell`, with the cell's key.
SELECT
    cell_night.night,
    sweep_id(cell_night.night) AS sweep_id,
    cell_night.search_id,
    cell.operation,
    cell.property_id,
    cell.market,
    cell.product_type,
    cell.check_in,
    cell.nights,
    cell.party,
    cell.currency AS currency_asked,
    CASE
        WHEN cell_night.outcome <> 'answered' THEN cell_night.outcome
        WHEN cell_night.is_absent THEN 'absent'
        WHEN coalesce(counted.offers, 0) > 0 THEN 'offered'
        ELSE 'no_offer'
    END AS status,
    CASE
        WHEN status = 'no_offer' THEN 1023 + drawn('code', cell.cell_key, 3)
        WHEN status = 'rejected' THEN 1027
        WHEN status = 'failed' THEN 500
    END::INTEGER AS code,
    CASE WHEN status <> 'not_swept' THEN cell_night.searched_at END AS searched_at,
    coalesce(counted.offers, 0)::INTEGER AS offers,
    cell.cell_key
FROM cell_night
INNER JOIN cell ON cell.cell_no = cell_night.cell_no
LEFT JOIN (
    SELECT
        cell_no,
        night,
        count(*) AS offers
    FROM observation
    WHERE is_offered
    GROUP BY cell_no, night
) AS counted ON counted.cell_no = cell_night.cell_no AND counted.night = cell_night.night
