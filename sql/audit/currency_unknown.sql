-- One row per offer in a currency that is not in ISO 4217.
SELECT
    offer.market,
    offer.property_id,
    offer.search_id,
    offer.offer_no,
    'currency is ' || left(offer.currency, 40) AS reason
FROM sweep_files.offer AS offer
ANTI JOIN ref.currency AS known ON known.currency = offer.currency
WHERE offer.currency IS NOT NULL
