-- One row per market: how its planned cells ended.
-- A failed cell counts as failed and in no share of the answered cells. A property on sale for a check-in usually is so
-- in every product type and currency, so shares on sale are judged by the number of properties and check-ins.
SELECT
    cells.market,
    cells.answered / nullif(cells.heard, 0) AS answered_share,
    cells.heard AS answered_share__of,
    cells.offered / nullif(cells.heard, 0) AS offered_share,
    cells.stays AS offered_share__of,
    cells.failed / nullif(cells.asked, 0) AS failed_share,
    cells.asked AS failed_share__of,
    cells.asked / cells.planned AS swept_share,
    cells.planned AS swept_share__of,
    cells.absent / nullif(cells.heard, 0) AS absent_share,
    cells.stays AS absent_share__of,
    cells.no_offer / nullif(cells.heard, 0) AS no_offer_share,
    cells.stays AS no_offer_share__of,
    cells.planned AS planned_cells,
    cells.planned AS planned_cells__of,
    cells.offers / nullif(cells.offered, 0) AS offers_per_cell,
    cells.properties AS offers_per_cell__of
FROM (
    SELECT
        cell.market,
        count(*) AS planned,
        count(*) FILTER (WHERE cell.status <> 'not_swept') AS asked,
        count(*) FILTER (WHERE cell.status NOT IN ('not_swept', 'failed')) AS heard,
        approx_count_distinct(row(cell.property_id, cell.check_in)) FILTER (
            WHERE cell.status NOT IN ('not_swept', 'failed')
        ) AS stays,
        count(*) FILTER (WHERE mart.is_answered(cell.status)) AS answered,
        count(*) FILTER (WHERE cell.status = 'offered') AS offered,
        count(*) FILTER (WHERE cell.status = 'failed') AS failed,
        count(*) FILTER (WHERE cell.status = 'absent') AS absent,
        count(*) FILTER (WHERE cell.status = 'no_offer') AS no_offer,
        sum(cell.offers) AS offers,
        approx_count_distinct(cell.property_id) FILTER (WHERE cell.status = 'offered') AS properties
    FROM sweep_files.cell AS cell
    GROUP BY cell.market
) AS cells
