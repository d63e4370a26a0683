-- One row per offer key that at least two of list (multi), detail (single) and quote answers contain.
-- list_total: Total in the list answer, in currency; NULL: not in a list answer.
-- detail_total: Total of the cheapest product of the detail answer for the same room, board and policy, in currency.
-- quote_total: Total of the last quote for this room, in currency; NULL: not `matched`, `raised` or `lowered`.
-- quote_outcome: Outcome of the last quote, over all its rooms; NULL: no quote was requested.
-- list_at: When the list search was sent, UTC.
-- detail_at: When the detail search was sent, UTC.
-- quote_at: When the last quote was sent, or was about to be, UTC.
-- list_to_detail_seconds: Seconds from the list search to the detail search; < 0: the list is later.
-- detail_to_quote_seconds: Seconds from the detail search to the quote.
-- list_to_quote_seconds: Seconds from the list search to the quote.
-- list_sent_property_id: Property id sent in the list search.
-- detail_sent_property_id: Property id sent in the detail search; of an opaque offer, the unbranded one.
-- quote_sent_property_id: Property id sent in the quote; of an opaque offer, the unbranded one.
-- detail_above_list: detail_total - list_total, in currency; NULL: different ids were sent, or incomplete detail.
-- quote_above_detail: quote_total - detail_total, in currency; NULL: different ids were sent.
-- quote_above_list: quote_total - list_total, in currency; NULL: different ids were sent.
WITH last_quote AS (
    SELECT
        quote.* EXCLUDE (offer_key, offer_no, room_stay_id, product_id, quote_total),
        room.offer_key,
        room.total AS quote_total,
        -- Several rooms of one request may have the same room type, board and policy; only room_no distinguishes them.
        CASE WHEN quote.rooms = 1 THEN quote.room_stay_id ELSE room.room_no END AS room_stay_id
    FROM lake.quote_offer AS room
    INNER JOIN lake.quote AS quote
        ON
            quote.run_id = room.run_id
            AND quote.quote_no = room.quote_no
    QUALIFY
        row_number() OVER (
            PARTITION BY room.property_id, room.offer_key
            ORDER BY quote.intended_at DESC, quote.quote_no DESC
        ) = 1
),

-- Most list offers are never seen in a detail answer.
looked_at AS (
    SELECT
        offer.property_id,
        offer.offer_key
    FROM mart.offer_latest AS offer
    WHERE offer.source = 'detail'
    UNION
    SELECT
        last_quote.property_id,
        last_quote.offer_key
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
        coalesce(search.sent_property_id, offer.property_id) AS sent_property_id,
        NULL AS outcome,
        offer.is_whole
    FROM mart.offer_latest AS offer
    INNER JOIN lake.search AS search
        ON
            search.sweep_id = offer.seen_sweep_id
            AND search.search_id = offer.seen_search_id
    SEMI JOIN looked_at
        ON
            looked_at.property_id = offer.property_id
            AND looked_at.offer_key = offer.offer_key

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
        -- What was quoted for another product, room or board is no other price of this offer.
        CASE
            WHEN
                last_quote.quote_currency = last_quote.currency
                AND last_quote.outcome IN ('matched', 'raised', 'lowered')
                THEN last_quote.quote_total
        END AS total,
        coalesce(last_quote.quoted_at, last_quote.intended_at) AS told_at,
        last_quote.sent_property_id,
        last_quote.outcome,
        TRUE AS is_whole
    FROM last_quote
)

SELECT
    told.offer_key,
    told.property_id,
    any_value(told.market) AS market,
    any_value(told.product_type) AS product_type,
    any_value(told.check_in) AS check_in,
    any_value(told.nights) AS nights,
    any_value(told.party) AS party,
    any_value(told.currency_asked) AS currency_asked,
    any_value(told.currency) AS currency,
    any_value(told.room_stay_id) AS room_stay_id,
    any_value(told.room_id) AS room_id,
    any_value(told.board_id) AS board_id,
    any_value(told.policy_key) AS policy_key,
    min(told.total) FILTER (WHERE told.told_by = 'multi') AS list_total,
    min(told.total) FILTER (WHERE told.told_by = 'detail') AS detail_total,
    min(told.total) FILTER (WHERE told.told_by = 'quote') AS quote_total,
    min(told.outcome) AS quote_outcome,
    min(told.told_at) FILTER (WHERE told.told_by = 'multi') AS list_at,
    min(told.told_at) FILTER (WHERE told.told_by = 'detail') AS detail_at,
    min(told.told_at) FILTER (WHERE told.told_by = 'quote') AS quote_at,
    date_diff('second', list_at, detail_at) AS list_to_detail_seconds,
    date_diff('second', detail_at, quote_at) AS detail_to_quote_seconds,
    date_diff('second', list_at, quote_at) AS list_to_quote_seconds,
    min(told.sent_property_id) FILTER (WHERE told.told_by = 'multi') AS list_sent_property_id,
    min(told.sent_property_id) FILTER (WHERE told.told_by = 'detail') AS detail_sent_property_id,
    min(told.sent_property_id) FILTER (WHERE told.told_by = 'quote') AS quote_sent_property_id,
    CASE
        WHEN
            detail_sent_property_id = list_sent_property_id
            -- In a partly unreadable detail answer, a dearer product may represent the key.
            AND bool_and(told.is_whole OR told.told_by <> 'detail')
            THEN try_cast(detail_total - list_total AS DECIMAL(18, 4))
    END AS detail_above_list,
    CASE
        WHEN quote_sent_property_id = detail_sent_property_id
            THEN try_cast(quote_total - detail_total AS DECIMAL(18, 4))
    END AS quote_above_detail,
    CASE
        WHEN quote_sent_property_id = list_sent_property_id THEN try_cast(quote_total - list_total AS DECIMAL(18, 4))
    END AS quote_above_list
FROM told
GROUP BY told.offer_key, told.property_id
HAVING count(DISTINCT told.told_by) > 1
