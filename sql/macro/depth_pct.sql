-- How far a total is below the price before promotions, in percent of that price.
-- < 0: the total is higher; NULL: no price before promotions is stated, or it is 0.
CREATE OR REPLACE MACRO mart.depth_pct(total, pre_promo_total) AS (
    100 * (1 - total::DOUBLE / nullif(pre_promo_total, 0)::DOUBLE)
)
