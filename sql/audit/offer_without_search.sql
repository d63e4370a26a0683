-- One row per offer whose search is not in the sweep, or was for something else.
SELECT
    offer.market,
    offer.property_id,
    offer.search_id,
    offer.offer_no,
    CASE WHEN search.search_id IS NULL THEN 'no such search' ELSE 'the search asked for something else' END AS reason
FROM sweep_files.offer AS offer
LEFT JOIN sweep_files.search AS search ON search.search_id = offer.search_id
WHERE
    search.search_id IS NULL
    OR search.market <> offer.market
    OR search.product_type <> offer.product_type
    OR search.check_in <> offer.check_in
    OR search.nights <> offer.nights
    OR search.party <> offer.party
    OR search.currency_asked IS DISTINCT FROM offer.currency_asked
