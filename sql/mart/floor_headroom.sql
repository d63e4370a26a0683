-- One row per source and hotel-only offer on sale, with how far its floor lies from its total.
-- floor: minSellablePrice: the lowest price to sell a hotel-only product at; NULL: none stated (0 is none, too).
-- floor_status: `stated`, or `none_stated`: then nothing can be said of compliance.
-- headroom: floor - total, in currency: what must be added to total to sell at the floor; below 0: total lies above it.
-- headroom_pct: 100 x (floor / total - 1): the mark-up on total at which the floor is reached.
SELECT
    offer.* REPLACE (nullif(offer.floor, 0) AS floor), -- noqa: RF02
    CASE WHEN nullif(offer.floor, 0) IS NULL THEN 'none_stated' ELSE 'stated' END AS floor_status,
    CASE WHEN offer.total > 0 THEN (nullif(offer.floor, 0) - offer.total)::DECIMAL(18, 4) END AS headroom,
    CASE
        WHEN offer.total > 0
            THEN 100 * (nullif(offer.floor, 0) - offer.total)::DOUBLE / offer.total::DOUBLE
    END AS headroom_pct
FROM mart.offer_latest AS offer
WHERE offer.product_type = 'Hotel'
