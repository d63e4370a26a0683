-- One row per cell with an offer in this sweep and in the last published one, and how its lowest price moved.
SELECT
    price.market,
    price.lead,
    price.product_type,
    price.property_id,
    price.search_id,
    date_trunc('month', price.check_in) AS month,
    price.currency,
    price.total,
    before.total AS total_before,
    price.offers,
    before.offers AS offers_before,
    price.floors,
    before.floors AS floors_before,
    ln(price.total::DOUBLE / before.total::DOUBLE) AS log_move
FROM audit.cell_price AS price
INNER JOIN audit.cell_price_before AS before
    ON
        before.property_id = price.property_id
        AND before.operation = price.operation
        AND before.market = price.market
        AND before.product_type = price.product_type
        AND before.check_in = price.check_in
        AND before.nights = price.nights
        AND before.party = price.party
        AND before.currency_asked IS NOT DISTINCT FROM price.currency_asked
        AND before.currency IS NOT DISTINCT FROM price.currency
WHERE price.total > 0 AND before.total > 0
