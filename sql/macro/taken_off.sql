-- What promotions take off a price, in currency; < 0: they add to it; NULL: no price before promotions is stated.
-- 0 if the prices differ by at most the currency's smallest unit: what was rounded is no discount.
CREATE OR REPLACE MACRO mart.taken_off(total, pre_promo_total, minor_unit) AS (
    CASE
        WHEN abs(pre_promo_total - total) <= coalesce(minor_unit, 0.01) THEN 0
        ELSE pre_promo_total - total
    END
)
