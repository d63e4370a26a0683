-- One row per search of this sweep that is evidence that a property is quiet; kept only until it has gone quiet.
SELECT DISTINCT
    sweep.sweep_id,
    cell.search_id,
    sweep.started_at AS asked_at,
    cell.operation,
    cell.property_id,
    cell.market,
    cell.product_type
FROM night.cell_observed AS cell
CROSS JOIN night.sweep AS sweep
CROSS JOIN ref.analysis AS analysis
INNER JOIN state.property_sale AS before
    ON
        before.operation = cell.operation
        AND before.property_id = cell.property_id
        AND before.market = cell.market
        AND before.product_type = cell.product_type
WHERE
    cell.is_answered
    AND before.quiet_nights < analysis.quiet_nights
QUALIFY
    bool_and(cell.status <> 'offered' AND cell.is_answered_whole) OVER (
        PARTITION BY cell.operation, cell.property_id, cell.market, cell.product_type
    )
