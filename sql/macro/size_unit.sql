-- Unit of a rule's sizes: `%` of the value that they are compared with, or as rules.toml says.
-- Written by `make sql-readme`.
CREATE OR REPLACE MACRO mart.size_unit(rule) AS (
    CASE rule
        WHEN 'wrong_discount' THEN 'percentage points'
        WHEN 'floor_eats_promotion' THEN 'percentage points'
        WHEN 'excluded_charges_mismatch' THEN '% of the total'
        ELSE '%'
    END
)
