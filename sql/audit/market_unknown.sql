-- One row per search for a market that the supplier's document does not list.
SELECT
    search.market,
    NULL::BIGINT AS property_id,
    search.search_id,
    NULL::INTEGER AS offer_no,
    'market is ' || search.market AS reason
FROM sweep_files.search AS search
ANTI JOIN ref.market AS market ON market.market = search.market
