-- One row per market with a search: how many cancel penalties its offers have.
-- Counted from its searches, so that a market that has lost all of them is a row that says 0.
SELECT
    asked.market,
    coalesce(penalties.rows, 0) / nullif(asked.offers, 0) AS penalties_per_offer,
    coalesce(penalties.properties, 0) AS penalties_per_offer__of,
    penalties.pct_mean AS penalty_pct_mean,
    coalesce(penalties.pct_rows, 0) AS penalty_pct_mean__of
FROM (
    SELECT
        search.market,
        sum(search.offers) AS offers
    FROM sweep_files.search AS search
    GROUP BY search.market
) AS asked
LEFT JOIN (
    SELECT
        penalty.market,
        count(*) AS rows,
        approx_count_distinct(penalty.property_id) AS properties,
        round(favg(penalty.penalty_pct), 9) AS pct_mean,
        count(penalty.penalty_pct) AS pct_rows
    FROM sweep_files.penalty AS penalty
    GROUP BY penalty.market
) AS penalties ON penalties.market = asked.market
