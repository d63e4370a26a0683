-- Whether price is base converted at a rate from lowest_rate to highest_rate, within tolerance_pct percent.
CREATE OR REPLACE MACRO mart.fits_rates(price, base, lowest_rate, highest_rate, tolerance_pct) AS (
    price::DOUBLE
    BETWEEN base::DOUBLE * lowest_rate * (1 - tolerance_pct / 100)
    AND base::DOUBLE * highest_rate * (1 + tolerance_pct / 100)
)
