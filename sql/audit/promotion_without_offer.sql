-- One row per promotion whose offer is not in the sweep.
SELECT
    promotion.market,
    promotion.property_id,
    promotion.search_id,
    promotion.offer_no,
    'no such offer' AS reason
FROM sweep_files.promotion AS promotion
ANTI JOIN sweep_files.offer AS offer
    ON
        offer.search_id = promotion.search_id
        AND offer.offer_no = promotion.offer_no
