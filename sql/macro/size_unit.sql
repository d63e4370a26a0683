-- Unit of a rule's sizes: `%` of the value that they are compared with, `% of the total`, or `percentage points`.
CREATE OR REPLACE MACRO mart.size_unit(rule) AS (
    CASE
        WHEN rule IN ('wrong_discount', 'floor_eats_promotion') THEN 'percentage points'
        WHEN rule = 'excluded_charges_mismatch' THEN '% of the total'
        ELSE '%'
    END
)
