-- One row per market and property with offers: how many there are, and of what kind.
SELECT
    offer.market,
    offer.property_id,
    count(*) AS offers,
    count(*) FILTER (WHERE offer.product_type = 'Hotel') AS hotel_offers,
    count(offer.floor) FILTER (WHERE offer.product_type = 'Hotel') AS floors,
    count(*) FILTER (WHERE offer.promotion_key <> 0) AS promoted,
    count(*) FILTER (WHERE offer.refundability IN ('refundable', 'mixed')) AS refundable
FROM sweep_files.offer AS offer
GROUP BY offer.market, offer.property_id
