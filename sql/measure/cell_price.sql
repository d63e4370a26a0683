-- One row per cell with an offer: its lowest price.
SELECT
    search.operation,
    lowest.property_id,
    search.market,
    search.product_type,
    search.check_in,
    search.nights,
    search.party,
    search.currency_asked,
    lowest.currency,
    lowest.search_id,
    lowest.total,
    lowest.offers,
    lowest.floors,
    search.lead
FROM (
    SELECT
        offer.search_id,
        offer.property_id,
        min(offer.currency) AS currency,
        min(offer.total) AS total,
        count(*) AS offers,
        count(offer.floor) AS floors
    FROM sweep_files.offer AS offer
    GROUP BY offer.search_id, offer.property_id
) AS lowest
INNER JOIN sweep_files.search_lead AS search ON search.search_id = lowest.search_id
