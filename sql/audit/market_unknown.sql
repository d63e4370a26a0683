-- One row per search for a market that the supplier's document does not list.
-- table: search
-- severity: critical
-- violators: quarantined, there is no such point of sale: all offers of the search are taken
SELECT
    search.market,
    NULL::BIGINT AS property_id,
    search.search_id,
    NULL::INTEGER AS offer_no,
    'market is ' || search.market AS reason
FROM sweep_files.search AS search
ANTI JOIN ref.market AS market ON market.market = search.market
