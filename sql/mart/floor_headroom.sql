-- One row per source and hotel-only offer on sale: the distance between its floor and its total.
-- floor: Lowest permitted selling price (minSellablePrice), in currency; NULL: none stated (0 counts as none).
-- floor_status: `stated` or `none_stated`; without a floor, compliance is unknown.
-- headroom: floor - total, in currency: mark-up needed to sell at the floor; < 0: total is above the floor.
-- headroom_pct: 100 x (floor / total - 1): mark-up on total that reaches the floor; < 0: total is above the floor.
SELECT
    offer.* REPLACE (nullif(offer.floor, 0) AS floor),
    CASE WHEN nullif(offer.floor, 0) IS NULL THEN 'none_stated' ELSE 'stated' END AS floor_status,
    CASE WHEN offer.total > 0 THEN (nullif(offer.floor, 0) - offer.total)::DECIMAL(18, 4) END AS headroom,
    CASE
        WHEN offer.total > 0
            THEN 100 * (nullif(offer.floor, 0) - offer.total)::DOUBLE / offer.total::DOUBLE
    END AS headroom_pct
FROM mart.offer_latest AS offer
WHERE offer.product_type = 'Hotel'
