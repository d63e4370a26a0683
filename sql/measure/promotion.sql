-- One row per market: how many promotions its offers have.
-- promotions_per_offer: warning both level: promotions of an offer
SELECT
    promotion.market,
    count(*) / greatest(any_value(offers.offers), 1) AS promotions_per_offer,
    any_value(offers.offers) AS promotions_per_offer__of
FROM sweep_files.promotion AS promotion
LEFT JOIN (
    SELECT
        search.market,
        sum(search.offers) AS offers
    FROM sweep_files.search AS search
    GROUP BY search.market
) AS offers ON offers.market = promotion.market
GROUP BY promotion.market
