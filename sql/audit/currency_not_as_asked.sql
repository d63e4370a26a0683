-- One row per offer in a currency other than the one requested.
SELECT
    offer.market,
    offer.property_id,
    offer.search_id,
    offer.offer_no,
    'asked for ' || offer.currency_asked || ', came in ' || offer.currency AS reason
FROM sweep_files.offer AS offer
WHERE offer.currency <> offer.currency_asked
