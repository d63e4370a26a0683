-- One row per operation, property, market and product type that has ever had an offer, as it stands after this sweep.
WITH tonight AS (
    SELECT
        cell.operation,
        cell.property_id,
        cell.market,
        cell.product_type,
        bool_or(cell.status = 'offered') AS is_offered,
        -- The unreadable part may be an offer.
        bool_and(cell.status <> 'offered' AND cell.is_answered_whole) AS is_quiet,
        min(cell.search_id) FILTER (WHERE cell.status = 'offered') AS offered_search_id,
        min(cell.search_id) AS search_id,
        count(*) AS cells
    FROM night.cell_observed AS cell
    WHERE cell.is_answered
    GROUP BY cell.operation, cell.property_id, cell.market, cell.product_type
)

SELECT
    coalesce(tonight.operation, before.operation) AS operation,
    coalesce(tonight.property_id, before.property_id) AS property_id,
    coalesce(tonight.market, before.market) AS market,
    coalesce(tonight.product_type, before.product_type) AS product_type,
    CASE WHEN tonight.is_offered THEN sweep.started_at ELSE before.last_offered_at END AS last_offered_at,
    CASE WHEN tonight.is_offered THEN sweep.sweep_id ELSE before.offered_sweep_id END AS offered_sweep_id,
    CASE
        WHEN tonight.is_offered THEN tonight.offered_search_id ELSE before.offered_search_id
    END AS offered_search_id,
    CASE WHEN tonight.operation IS NULL THEN before.last_answered_at ELSE sweep.started_at END AS last_answered_at,
    CASE
        WHEN tonight.is_quiet THEN sweep.snapshot_date
        WHEN tonight.is_offered THEN NULL
        ELSE before.quiet_date
    END AS quiet_date,
    CASE
        WHEN tonight.is_quiet THEN sweep.sweep_id
        WHEN tonight.is_offered THEN NULL
        ELSE before.quiet_sweep_id
    END AS quiet_sweep_id,
    CASE
        WHEN tonight.is_quiet THEN tonight.search_id
        WHEN tonight.is_offered THEN NULL
        ELSE before.quiet_search_id
    END AS quiet_search_id,
    CASE
        WHEN tonight.is_offered THEN 0
        WHEN tonight.is_quiet AND coalesce(before.quiet_date < sweep.snapshot_date, TRUE) THEN before.quiet_nights + 1
        ELSE before.quiet_nights
    END AS quiet_nights,
    CASE
        WHEN tonight.is_offered THEN 0
        WHEN tonight.is_quiet THEN before.quiet_cells + tonight.cells
        ELSE before.quiet_cells
    END AS quiet_cells
FROM tonight
FULL JOIN state.property_sale AS before
    ON
        before.operation = tonight.operation
        AND before.property_id = tonight.property_id
        AND before.market = tonight.market
        AND before.product_type = tonight.product_type
CROSS JOIN night.sweep AS sweep
WHERE tonight.is_offered OR before.operation IS NOT NULL
