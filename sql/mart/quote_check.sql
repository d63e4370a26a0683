-- One row per quote: price at search, price at quote, and the age of the price.
-- total_change: quote_total - search_total, in currency; > 0: dearer; NULL: one is unknown, or the currencies differ.
-- total_change_pct: total_change in percent of search_total; > 0: dearer; NULL: as total_change.
-- age_group: Age of the price when it was quoted, in ranges of hours; NULL: the call's time is unknown.
SELECT
    quote.*,
    CASE
        WHEN quote.quote_currency = quote.currency
            THEN try_cast(quote.quote_total - quote.search_total AS DECIMAL(18, 4))
    END AS total_change,
    CASE
        WHEN quote.quote_currency = quote.currency AND quote.search_total > 0
            THEN 100.0 * (quote.quote_total - quote.search_total)::DOUBLE / quote.search_total::DOUBLE
    END AS total_change_pct,
    CASE
        WHEN quote.age_seconds < 3600 THEN 'under 1 h'
        WHEN quote.age_seconds < 6 * 3600 THEN '1 to 6 h'
        WHEN quote.age_seconds < 24 * 3600 THEN '6 to 24 h'
        WHEN quote.age_seconds IS NOT NULL THEN 'over 24 h'
    END AS age_group
FROM lake.quote AS quote
