-- One row per offer that costs more after its promotions than before them, by more than rounding (mart.taken_off).
SELECT
    offer.market,
    offer.property_id,
    offer.search_id,
    offer.offer_no,
    format(
        'the total of {:,.2f} {} is above the price before promotions, {:,.2f}',
        offer.total::DOUBLE,
        coalesce(offer.currency, ''),
        offer.pre_promo_total::DOUBLE
    ) AS reason
FROM sweep_files.offer AS offer
LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
WHERE
    -- The first condition is known before the join; the second excludes what is only rounded.
    offer.total > offer.pre_promo_total
    AND mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) < 0
