-- One row per market: how many cancel penalties its offers have.
-- penalties_per_offer: warning both level: penalties of an offer
-- penalty_pct_mean: warning both level: average percentage of a penalty
SELECT
    penalty.market,
    count(*) / greatest(any_value(offers.offers), 1) AS penalties_per_offer,
    any_value(offers.offers) AS penalties_per_offer__of,
    avg(penalty.penalty_pct) AS penalty_pct_mean,
    count(penalty.penalty_pct) AS penalty_pct_mean__of
FROM sweep_files.penalty AS penalty
LEFT JOIN (
    SELECT
        search.market,
        sum(search.offers) AS offers
    FROM sweep_files.search AS search
    GROUP BY search.market
) AS offers ON offers.market = penalty.market
GROUP BY penalty.market
