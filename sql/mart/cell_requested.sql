-- One row per cell whose stay is in the future and that is still requested: its latest request.
-- What left the spec is not listed, as its offers are no longer compared: the cells of a property, market or currency
-- after unobserved_nights; those of a stay, party or product type after unrequested_days.
WITH latest AS (
    SELECT
        max(sweep.started_at) AS started_at,
        any_value(analysis.unobserved_nights) AS unobserved_nights,
        any_value(analysis.unrequested_days) AS unrequested_days
    FROM mart.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
),

property_left AS (
    SELECT DISTINCT
        sale.property_id,
        sale.market
    FROM state.property_sale AS sale
    ANTI JOIN mart.property_requested AS requested
        ON
            requested.property_id = sale.property_id
            AND requested.market = sale.market
),

-- Within a market and kind of search, all currencies are requested on the same nights.
in_currency AS (
    SELECT
        cell.operation,
        cell.market,
        cell.currency_asked,
        max(cell.asked_at) AS asked_at
    FROM state.cell AS cell
    GROUP BY cell.operation, cell.market, cell.currency_asked
),

currency_left AS (
    SELECT
        placed.operation,
        placed.market,
        placed.currency_asked
    FROM (
        SELECT
            in_currency.*,
            max(in_currency.asked_at) OVER (PARTITION BY in_currency.operation, in_currency.market) AS of_kind,
            max(in_currency.asked_at) OVER (PARTITION BY in_currency.market) AS of_market
        FROM in_currency
    ) AS placed
    CROSS JOIN latest
    WHERE
        date_diff('day', mart.utc(placed.asked_at)::DATE, mart.utc(placed.of_kind)::DATE) > latest.unobserved_nights
        OR date_diff('day', mart.utc(placed.of_market)::DATE, mart.utc(latest.started_at)::DATE)
        > latest.unobserved_nights
)

SELECT cell.*
FROM state.cell AS cell
CROSS JOIN latest
ANTI JOIN property_left
    ON
        property_left.property_id = cell.property_id
        AND property_left.market = cell.market
ANTI JOIN currency_left
    ON
        currency_left.operation = cell.operation
        AND currency_left.market = cell.market
        AND currency_left.currency_asked IS NOT DISTINCT FROM cell.currency_asked
WHERE
    latest.started_at IS NULL
    OR date_diff('day', mart.utc(cell.asked_at)::DATE, mart.utc(latest.started_at)::DATE) <= latest.unrequested_days
