-- One row per offer whose total is zero or less: no price to sell at.
SELECT
    offer.market,
    offer.property_id,
    offer.search_id,
    offer.offer_no,
    format('the total is {:,.2f} {}', offer.total::DOUBLE, coalesce(offer.currency, '')) AS reason
FROM sweep_files.offer AS offer
WHERE offer.total <= 0
