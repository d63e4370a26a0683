-- One row per offer that costs more after its promotions than before them.
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
WHERE offer.total > offer.pre_promo_total
