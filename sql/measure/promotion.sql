-- One row per market with a search: how many promotions its offers have.
-- Counted from its searches, so that a market that has lost all of them is a row with 0.
SELECT
    asked.market,
    coalesce(promotions.rows, 0) / nullif(asked.offers, 0) AS promotions_per_offer,
    asked.offers AS promotions_per_offer__of
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
        sum(property.promotions) AS rows
    FROM audit.property_promotions AS property
    GROUP BY property.market
) AS promotions ON promotions.market = asked.market
