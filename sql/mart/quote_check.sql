-- One row per quote: price at search, price at quote, and the age of the price.
-- total_change: quote_total - search_total, in currency; > 0: dearer; NULL: not `matched`, `raised` or `lowered`.
-- total_change_pct: total_change in percent of search_total; > 0: dearer; NULL: as total_change.
-- age_group: Age of the price when it was quoted, in ranges of hours; NULL: the call's time is unknown.
-- has_other_policy: TRUE: a room is quoted with other cancellation terms than at search; NULL: a quote states none.
WITH terms AS (
    SELECT
        room.run_id,
        room.quote_no,
        -- A room without stated terms may have the same ones or others.
        CASE
            WHEN bool_and(room.policy_key IS NOT NULL AND room.refundability IS DISTINCT FROM 'unknown')
                THEN bool_or(room.policy_key <> quote.policy_key)
        END AS has_other_policy
    FROM lake.quote_offer AS room
    INNER JOIN lake.quote AS quote
        ON
            quote.run_id = room.run_id
            AND quote.quote_no = room.quote_no
    GROUP BY room.run_id, room.quote_no
)

SELECT
    quote.*,
    CASE
        WHEN quote.quote_currency = quote.currency AND quote.outcome IN ('matched', 'raised', 'lowered')
            THEN try_cast(quote.quote_total - quote.search_total AS DECIMAL(18, 4))
    END AS total_change,
    CASE
        WHEN
            quote.quote_currency = quote.currency
            AND quote.search_total > 0
            AND quote.outcome IN ('matched', 'raised', 'lowered')
            THEN 100.0 * (quote.quote_total - quote.search_total)::DOUBLE / quote.search_total::DOUBLE
    END AS total_change_pct,
    CASE
        WHEN quote.age_seconds < 3600 THEN 'under 1 h'
        WHEN quote.age_seconds < 6 * 3600 THEN '1 to 6 h'
        WHEN quote.age_seconds < 24 * 3600 THEN '6 to 24 h'
        WHEN quote.age_seconds IS NOT NULL THEN 'over 24 h'
    END AS age_group,
    terms.has_other_policy
FROM lake.quote AS quote
LEFT JOIN terms
    ON
        terms.run_id = quote.run_id
        AND terms.quote_no = quote.quote_no
