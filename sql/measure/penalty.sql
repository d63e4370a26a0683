-- One row per market with a search: how many cancellation penalties its offers have.
-- Counted from its searches, so that a market that has lost all of them is a row with 0.
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
        property.market,
        sum(property.penalties) AS rows,
        count(*) AS properties,
        round(fsum(property.pct) / nullif(sum(property.stated), 0), 9) AS pct_mean,
        sum(property.stated) AS pct_rows
    FROM audit.property_penalties AS property
    GROUP BY property.market
) AS penalties ON penalties.market = asked.market
