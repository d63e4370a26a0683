-- One row per market: how many of its properties are on sale.
-- market: Market.
-- properties: Number of properties that had an offer there, in list or detail answers, and have not gone quiet since.
-- If a market sells nothing at all for a day or two, what it last sold still counts as on sale. A property that was
-- last requested unobserved_nights ago (ref.analysis) no longer counts.
WITH latest AS (
    SELECT max(sale.last_answered_at) AS answered_at
    FROM state.property_sale AS sale
),

-- Requested without an answer, as when searches fail for nights.
failed AS (
    SELECT DISTINCT
        cell.operation,
        cell.property_id,
        cell.market,
        cell.product_type
    FROM state.cell AS cell
    CROSS JOIN latest
    CROSS JOIN ref.analysis AS analysis
    WHERE
        cell.status IN ('failed', 'not_swept', 'rejected')
        AND mart.is_on_sale(cell.asked_at, latest.answered_at, analysis.unobserved_nights)
),

asked AS (
    SELECT sale.*
    FROM state.property_sale AS sale
    CROSS JOIN latest
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN failed
        ON
            failed.operation = sale.operation
            AND failed.property_id = sale.property_id
            AND failed.market = sale.market
            AND failed.product_type = sale.product_type
    WHERE
        mart.is_on_sale(sale.last_answered_at, latest.answered_at, analysis.unobserved_nights)
        OR failed.operation IS NOT NULL
),

placed AS (
    SELECT
        asked.*,
        asked.last_offered_at = max(asked.last_offered_at) OVER (PARTITION BY asked.operation, asked.market)
            AS is_of_last
    FROM asked
)

SELECT
    placed.market,
    count(DISTINCT placed.property_id) AS properties
FROM placed
CROSS JOIN ref.analysis AS analysis
WHERE
    placed.quiet_date IS NULL
    OR (placed.is_of_last AND placed.quiet_nights <= analysis.silent_nights)
GROUP BY placed.market
