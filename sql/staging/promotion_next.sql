-- One row per promotion of a promotion key that no earlier published sweep had, as one offer of the night words it.
WITH example AS (
    SELECT
        observed.promotion_key,
        min({ 'search_id': observed.search_id, 'offer_no': observed.offer_no }) AS place
    FROM night.offer_observed AS observed
    ANTI JOIN state.promotion AS known ON known.promotion_key = observed.promotion_key
    WHERE observed.promotion_key <> 0
    GROUP BY observed.promotion_key
)

SELECT
    example.promotion_key,
    promotion.promotion_no,
    promotion.promo_type,
    promotion.description,
    CASE regexp_replace(lower(promotion.promo_type), '[^a-z]', '', 'g')
        WHEN 'valueadd' THEN 'value_add'
        WHEN 'discountoff' THEN 'discount_off'
        WHEN 'freenight' THEN 'free_night'
        ELSE CASE WHEN promotion.promo_type IS NOT NULL THEN 'other' END
    END AS promotion_kind
FROM sweep_files.promotion AS promotion
INNER JOIN example
    ON
        example.place.search_id = promotion.search_id
        AND example.place.offer_no = promotion.offer_no
