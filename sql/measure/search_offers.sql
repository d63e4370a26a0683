-- One row per search with offers in the sweep, and how many there are.
SELECT
    offer.search_id,
    any_value(offer.market) AS market,
    count(*) AS offers
FROM sweep_files.offer AS offer
GROUP BY offer.search_id
