-- One row per property and market in which it has had offers, and that was requested within unobserved_nights.
-- market: Market.
-- A property that was removed from the spec, or from a market, is not listed. One whose searches fail is.
-- `unobserved_nights` is a setting: `ref.analysis`.
WITH latest AS (
    SELECT
        max(sweep.started_at) AS started_at,
        any_value(analysis.unobserved_nights) AS unobserved_nights
    FROM mart.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
),

request AS (
    SELECT
        sale.property_id,
        sale.market,
        sale.last_answered_at AS requested_at
    FROM state.property_sale AS sale

    UNION ALL

    SELECT
        cell.property_id,
        cell.market,
        cell.asked_at AS requested_at
    FROM state.cell AS cell
    WHERE NOT mart.is_answered(cell.status)
)

SELECT DISTINCT
    request.property_id,
    request.market
FROM request
CROSS JOIN latest
WHERE
    latest.started_at IS NULL
    OR date_diff('day', mart.utc(request.requested_at)::DATE, mart.utc(latest.started_at)::DATE)
    <= latest.unobserved_nights
