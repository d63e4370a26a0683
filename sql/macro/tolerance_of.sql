-- Percentage within which two prices meet on a currency basis; larger at a reference rate, which excludes any mark-up.
CREATE OR REPLACE MACRO mart.tolerance_of(currency_basis, tolerance_pct, reference_rate_pct) AS (
    tolerance_pct + CASE WHEN currency_basis = 'reference_rate' THEN reference_rate_pct ELSE 0 END
)
