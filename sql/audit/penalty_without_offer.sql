-- One row per penalty whose offer is not in the sweep.
SELECT
    penalty.market,
    penalty.property_id,
    penalty.search_id,
    penalty.offer_no,
    'no such offer' AS reason
FROM sweep_files.penalty AS penalty
ANTI JOIN sweep_files.offer AS offer
    ON
        offer.search_id = penalty.search_id
        AND offer.offer_no = penalty.offer_no
