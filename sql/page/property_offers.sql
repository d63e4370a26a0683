-- One row per property: its offers on sale.
SELECT
    property_id,
    count(*) AS offers
FROM mart.offer_latest
WHERE is_within(property_id, market, check_in)
GROUP BY ALL
