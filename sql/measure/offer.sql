-- One row per market: what its offers are like.
-- floor_share: critical both share: hotel-only offers that state a floor
-- promoted_share: warning both share: offers with a promotion
-- refundable_share: warning both share: offers that can be cancelled with a refund, at least in part
SELECT
    offer.market,
    count(offer.floor) FILTER (WHERE offer.product_type = 'Hotel')
    / nullif(count(*) FILTER (WHERE offer.product_type = 'Hotel'), 0) AS floor_share,
    count(*) FILTER (WHERE offer.product_type = 'Hotel') AS floor_share__of,
    count(*) FILTER (WHERE offer.promotion_key <> 0) / count(*) AS promoted_share,
    count(*) AS promoted_share__of,
    count(*) FILTER (WHERE offer.refundability IN ('refundable', 'mixed')) / count(*) AS refundable_share,
    count(*) AS refundable_share__of
FROM sweep_files.offer AS offer
GROUP BY offer.market
