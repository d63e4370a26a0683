-- One row per offer that at least two of the operations have told of: list (multi), detail (single) and quote.
-- list_offer_key: Key of the list's price series: mart.offer_history; the two operations are two series.
-- detail_offer_key: Key of the detail's price series.
-- list_total: Total of the list answer, in currency; NULL: it does not tell of this offer.
-- detail_total: Total of the cheapest product of the detail answer for the same room, board and policy.
-- quote_total: Total of the last quote, in currency.
-- quote_outcome: What came of the last quote; NULL: none was asked.
-- list_at: When the list search was sent.
-- detail_at: When the detail search was sent.
-- quote_at: When the last quote was sent, or was about to be.
-- list_to_detail_seconds: Seconds from the list search to the detail search; below 0: the list is the later one.
-- detail_to_quote_seconds: Seconds from the detail search to the quote.
-- list_to_quote_seconds: Seconds from the list search to the quote.
-- detail_above_list: detail_total - list_total, in currency; 0: the list tells the truth.
-- quote_above_detail: quote_total - detail_total, in currency.
-- quote_above_list: quote_total - list_total, in currency.
WITH last_quote AS (
    SELECT quote.*
    FROM lake.quote AS quote
    QUALIFY
        row_number() OVER (
            PARTITION BY
                quote.property_id,
                quote.market,
                quote.product_type,
                quote.check_in,
                quote.nights,
                quote.party,
                quote.currency_asked,
                quote.currency,
                quote.room_stay_id,
                quote.room_id,
                quote.board_id,
                quote.policy_key
            ORDER BY quote.intended_at DESC, quote.quote_no DESC
        ) = 1
),

-- Most of what lists tell of is never looked at more closely.
looked_at AS (
    SELECT DISTINCT
        offer.property_id,
        offer.market,
        offer.check_in
    FROM mart.offer_latest AS offer
    WHERE offer.source = 'detail'
    UNION
    SELECT
        last_quote.property_id,
        last_quote.market,
        last_quote.check_in
    FROM last_quote
),

told AS (
    SELECT
        offer.source AS told_by,
        offer.offer_key,
        offer.property_id,
        offer.market,
        offer.product_type,
        offer.check_in,
        offer.nights,
        offer.party,
        offer.currency_asked,
        offer.currency,
        offer.room_stay_id,
        offer.room_id,
        offer.board_id,
        offer.policy_key,
        offer.total,
        search.started_at AS told_at,
        NULL AS outcome
    FROM mart.offer_latest AS offer
    INNER JOIN lake.search AS search
        ON
            search.sweep_id = offer.seen_sweep_id
            AND search.search_id = offer.seen_search_id
    SEMI JOIN looked_at
        ON
            looked_at.property_id = offer.property_id
            AND looked_at.market = offer.market
            AND looked_at.check_in = offer.check_in

    UNION ALL

    SELECT
        'quote' AS told_by,
        last_quote.offer_key,
        last_quote.property_id,
        last_quote.market,
        last_quote.product_type,
        last_quote.check_in,
        last_quote.nights,
        last_quote.party,
        last_quote.currency_asked,
        last_quote.currency,
        last_quote.room_stay_id,
        last_quote.room_id,
        last_quote.board_id,
        last_quote.policy_key,
        CASE WHEN last_quote.quote_currency = last_quote.currency THEN last_quote.quote_total END AS total,
        coalesce(last_quote.quoted_at, last_quote.intended_at) AS told_at,
        last_quote.outcome
    FROM last_quote
)

SELECT
    told.property_id,
    told.market,
    told.product_type,
    told.check_in,
    told.nights,
    told.party,
    told.currency_asked,
    told.currency,
    told.room_stay_id,
    told.room_id,
    told.board_id,
    told.policy_key,
    min(told.offer_key) FILTER (WHERE told.told_by = 'multi') AS list_offer_key,
    min(told.offer_key) FILTER (WHERE told.told_by = 'detail') AS detail_offer_key,
    min(told.total) FILTER (WHERE told.told_by = 'multi') AS list_total,
    min(told.total) FILTER (WHERE told.told_by = 'detail') AS detail_total,
    min(told.total) FILTER (WHERE told.told_by = 'quote') AS quote_total,
    min(told.outcome) AS quote_outcome,
    min(told.told_at) FILTER (WHERE told.told_by = 'multi') AS list_at,
    min(told.told_at) FILTER (WHERE told.told_by = 'detail') AS detail_at,
    min(told.told_at) FILTER (WHERE told.told_by = 'quote') AS quote_at,
    date_diff('second', list_at, detail_at) AS list_to_detail_seconds, -- noqa: RF02
    date_diff('second', detail_at, quote_at) AS detail_to_quote_seconds, -- noqa: RF02
    date_diff('second', list_at, quote_at) AS list_to_quote_seconds, -- noqa: RF02
    (detail_total - list_total)::DECIMAL(18, 4) AS detail_above_list,
    (quote_total - detail_total)::DECIMAL(18, 4) AS quote_above_detail,
    (quote_total - list_total)::DECIMAL(18, 4) AS quote_above_list
FROM told
GROUP BY
    told.property_id,
    told.market,
    told.product_type,
    told.check_in,
    told.nights,
    told.party,
    told.currency_asked,
    told.currency,
    told.room_stay_id,
    told.room_id,
    told.board_id,
    told.policy_key
HAVING count(DISTINCT told.told_by) > 1
