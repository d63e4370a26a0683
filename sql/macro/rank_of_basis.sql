-- Place of a currency basis by what it can show: one currency (1), the supplier's own rate (2), the reference rate (3).
CREATE OR REPLACE MACRO mart.rank_of_basis(currency_basis) AS (
    CASE currency_basis WHEN 'same' THEN 1 WHEN 'supplier_rate' THEN 2 WHEN 'reference_rate' THEN 3 END
)
