-- One row per offer that costs more after its promotions than before them.
SELECT
    offer.market,
    offer.property_id,
    offer.search_id,
    offer.offer_no,
    'total ' || offer.total || ' is above pre_promo_total ' || offer.pre_promo_total AS reason
FROM sweep_files.offer AS offer
WHERE offer.total > offer.pre_promo_total
