-- Basis on which two prices are compared: one currency, the rate of an offer answered in both, or the day's rate.
CREATE OR REPLACE MACRO mart.currency_basis(currency, reference_currency, total_in_reference_currency) AS (
    CASE
        WHEN currency = reference_currency THEN 'same'
        WHEN total_in_reference_currency > 0 THEN 'supplier_rate'
        ELSE 'reference_rate'
    END
)
