-- One row per market: figures of its offers.
-- A property usually states floors on all its offers or on none, so floor_share is judged by the number of properties:
-- all cells of one change together.
SELECT
    property.market,
    sum(property.floors) / nullif(sum(property.hotel_offers), 0) AS floor_share,
    count(*) FILTER (WHERE property.hotel_offers > 0) AS floor_share__of,
    sum(property.promoted) / sum(property.offers) AS promoted_share,
    sum(property.offers) AS promoted_share__of,
    sum(property.refundable) / sum(property.offers) AS refundable_share,
    sum(property.offers) AS refundable_share__of
FROM audit.property_offers AS property
GROUP BY property.market
