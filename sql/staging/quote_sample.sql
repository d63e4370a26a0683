-- One row per offer to quote, in an order that follows from a seed: on sale, its product and price known, one room.
-- An offer that both a list and a detail answer tell of is one offer; the detail answer is taken.
-- `wanted` is one row: seed, size, today (no check-in is asked for up to it), and lists of markets and property_ids,
-- empty for all.
SELECT
    offer.source,
    offer.offer_key,
    offer.property_id,
    offer.market,
    offer.product_type,
    offer.check_in,
    offer.nights,
    offer.party,
    offer.currency_asked,
    offer.room_stay_id,
    offer.room_id,
    offer.board_id,
    offer.policy_key,
    offer.product_id,
    offer.currency,
    offer.total,
    offer.seen_sweep_id AS sweep_id,
    offer.seen_search_id AS search_id,
    offer.seen_offer_no AS offer_no,
    search.started_at AS searched_at
FROM mart.offer_latest AS offer
INNER JOIN lake.search AS search
    ON
        search.sweep_id = offer.seen_sweep_id
        AND search.search_id = offer.seen_search_id
CROSS JOIN wanted
WHERE
    offer.product_id IS NOT NULL
    AND offer.total IS NOT NULL
    AND offer.currency IS NOT NULL
    AND offer.check_in > wanted.today
    -- A quote names one product for each room, and offers of several rooms are not told which go together.
    AND NOT contains(offer.party, '+')
    AND (len(wanted.markets) = 0 OR list_contains(wanted.markets, offer.market))
    AND (len(wanted.property_ids) = 0 OR list_contains(wanted.property_ids, offer.property_id))
QUALIFY
    row_number() OVER (
        PARTITION BY
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
            offer.policy_key
        ORDER BY offer.source ASC, offer.offer_key ASC
    ) = 1
ORDER BY
    md5(concat_ws('|', wanted.seed, offer.offer_key)) ASC,
    offer.offer_key ASC
LIMIT (SELECT one_row.size FROM wanted AS one_row)
