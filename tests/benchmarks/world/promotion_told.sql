-- One row per promotion of `offer_told`: a row of the lake's table `promotion`.
SELECT
    offer.sweep_id,
    offer.search_id,
    offer.offer_no,
    0 AS promotion_no,
    offer.property_id,
    offer.market,
    promotion.promo_type,
    promotion.description
FROM offer_told AS offer
INNER JOIN promotion ON promotion.promotion_key = offer.promotion_key
WHERE promotion.promo_type IS NOT NULL
