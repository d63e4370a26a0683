-- One row per market: what its offers are like. Whether it states floors is a habit of a property, so floor_share is
-- judged by the number of properties: all cells of one differ together.
SELECT
    offer.market,
    count(offer.floor) FILTER (WHERE offer.product_type = 'Hotel')
    / nullif(count(*) FILTER (WHERE offer.product_type = 'Hotel'), 0) AS floor_share,
    approx_count_distinct(offer.property_id) FILTER (WHERE offer.product_type = 'Hotel') AS floor_share__of,
    count(*) FILTER (WHERE offer.promotion_key <> 0) / count(*) AS promoted_share,
    count(*) AS promoted_share__of,
    count(*) FILTER (WHERE offer.refundability IN ('refundable', 'mixed')) / count(*) AS refundable_share,
    count(*) AS refundable_share__of
FROM sweep_files.offer AS offer
GROUP BY offer.market
