-- Reference rate that a finding uses: units of to_currency per unit of from_currency; NULL where rate is NULL.
CREATE OR REPLACE MACRO mart.conversion(from_currency, to_currency, rate, rate_date) AS (
    CASE
        WHEN rate IS NOT NULL
            THEN
                {
                    'from_currency': from_currency::VARCHAR,
                    'to_currency': to_currency::VARCHAR,
                    'rate': rate::DECIMAL(18, 8),
                    'rate_date': rate_date::DATE
                }
    END
)
