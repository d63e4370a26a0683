-- One row per property: its offers on sale; one in both a list and a detail answer counts once.
SELECT
    property_id,
    count(DISTINCT offer_key) AS offers
FROM mart.offer_latest
WHERE is_within(property_id, market, check_in)
GROUP BY ALL
