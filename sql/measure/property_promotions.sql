-- One row per market and property with promotions, and how many there are.
SELECT
    promotion.market,
    promotion.property_id,
    count(*) AS promotions
FROM sweep_files.promotion AS promotion
GROUP BY promotion.market, promotion.property_id
