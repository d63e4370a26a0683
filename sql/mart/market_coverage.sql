-- One row per source, market and product type: requested cells whose stay is in the future, and those answered.
-- planned: Number of requested cells whose stay is in the future.
-- answered: Number of requested cells whose latest request was answered, with or without an offer.
-- What left the spec does not count, as its offers are no longer compared: after unobserved_nights a property, a market
-- or a currency; after unrequested_days a stay, a party or a product type.
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

SELECT
    CASE cell.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
    cell.market,
    cell.product_type,
    count(*) AS planned,
    count(*) FILTER (WHERE cell.status IN ('offered', 'no_offer', 'absent')) AS answered
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
GROUP BY ALL
