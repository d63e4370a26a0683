-- One row per promotion key with which an offer was ever sold: the promotions that it names.
-- promotion_kinds: Distinct kinds of the promotions named, separated by commas; NULL: none named, or without a kind.
-- promotion_text: Texts of the promotions named, separated by semicolons; NULL: none.
-- names_price_promotion: TRUE: names a discount or free night; FALSE: names none, or only value adds; NULL: unknown.
-- promised_pct: Largest percentage in the texts of discounts and free nights (the first of each text); NULL: none.
SELECT
    promotion.promotion_key,
    string_agg(DISTINCT promotion.promotion_kind, ',' ORDER BY promotion.promotion_kind) AS promotion_kinds,
    string_agg(promotion.description, '; ' ORDER BY promotion.promotion_no) AS promotion_text,
    CASE
        WHEN bool_or(promotion.promotion_kind IN ('discount_off', 'free_night')) THEN TRUE
        WHEN bool_and(coalesce(promotion.promotion_kind = 'value_add', FALSE)) THEN FALSE
    END AS names_price_promotion,
    max(
        try_cast(replace(regexp_extract(promotion.description, '([0-9]+(?:[.,][0-9]+)?) ?%', 1), ',', '.') AS DOUBLE)
    ) FILTER (WHERE promotion.promotion_kind IN ('discount_off', 'free_night')) AS promised_pct
FROM state.promotion AS promotion
GROUP BY promotion.promotion_key

UNION ALL

SELECT
    0 AS promotion_key,
    NULL AS promotion_kinds,
    NULL AS promotion_text,
    FALSE AS names_price_promotion,
    NULL AS promised_pct
