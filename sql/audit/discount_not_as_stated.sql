-- One row per offer whose stated discount differs from that of its prices by more than rounding explains.
-- Some properties state the discount in whole percent, others prices in whole units: half a percent, and half a unit
-- of money as a share of the price, can both be rounding. A total that is above only by rounding is equal.
SELECT
    offer.market,
    offer.property_id,
    offer.search_id,
    offer.offer_no,
    format(
        'a discount of {:.4g}% is stated, but {:,.2f} {} is {:.1f}% off the price before promotions, {:,.2f}',
        offer.discount_pct::DOUBLE,
        offer.total::DOUBLE,
        coalesce(offer.currency, ''),
        mart.depth_pct(offer.total, offer.pre_promo_total),
        offer.pre_promo_total::DOUBLE
    ) AS reason
FROM sweep_files.offer AS offer
LEFT JOIN ref.currency AS unit
    ON unit.currency = CASE WHEN offer.total > offer.pre_promo_total THEN offer.currency END
WHERE
    offer.pre_promo_total > 0
    AND mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) >= 0
    AND abs(offer.discount_pct - mart.depth_pct(offer.total, offer.pre_promo_total))
    > 0.51 + 51 / offer.pre_promo_total::DOUBLE
