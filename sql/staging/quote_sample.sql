-- One row per offer to quote, in an order given by a seed: on sale, with a known product and price for each room.
-- rooms: The offers of its rooms in order, each with what a quote names.
-- An offer of several rooms is one room type, board and policy for all of them, in one answer: rooms of different
-- types are not sold together (error 1026). Where a list and a detail answer both have an offer, the detail is used.
-- sent_property_id: Property id under which the product was listed, and that its quote names.
-- A product belongs to one property id, and an opaque offer is quoted under the unbranded one: for a branded property
-- of the map, the quote uses what a detail answer listed under its unbranded id.
-- `wanted` is one row: seed, size, today (only later check-ins are quoted), and lists of markets and property_ids; an
-- empty list means all.
WITH quotable AS (
    SELECT
        offer.*,
        len(string_split(offer.party, '+')) AS rooms_asked,
        -- The room number matters only with several rooms: each offer is for one of the requested rooms.
        CASE WHEN rooms_asked = 1 THEN offer.room_stay_id END AS sole_room_stay_id
    FROM mart.offer_latest AS offer
    CROSS JOIN wanted
    WHERE
        offer.product_id IS NOT NULL
        AND offer.total IS NOT NULL
        AND offer.currency IS NOT NULL
        AND offer.check_in > wanted.today
        AND (len(wanted.markets) = 0 OR list_contains(wanted.markets, offer.market))
        AND (len(wanted.property_ids) = 0 OR list_contains(wanted.property_ids, offer.property_id))
        AND (rooms_asked = 1 OR (offer.room_id IS NOT NULL AND offer.room_stay_id BETWEEN 0 AND rooms_asked - 1))
),

whole AS (
    SELECT
        quotable.source,
        quotable.property_id,
        quotable.market,
        quotable.product_type,
        quotable.check_in,
        quotable.nights,
        quotable.party,
        quotable.currency_asked,
        quotable.room_id,
        quotable.board_id,
        quotable.policy_key,
        quotable.currency,
        quotable.sole_room_stay_id,
        quotable.seen_sweep_id AS sweep_id,
        quotable.seen_search_id AS search_id,
        list(
            struct_pack(
                offer_key := quotable.offer_key,
                offer_no := quotable.seen_offer_no,
                room_stay_id := quotable.room_stay_id,
                product_id := quotable.product_id,
                total := quotable.total
            ) ORDER BY quotable.room_stay_id
        ) AS rooms,
        min_by(quotable.offer_key, coalesce(quotable.room_stay_id, 0)) AS first_offer_key
    FROM quotable
    GROUP BY ALL
    HAVING count(DISTINCT coalesce(quotable.room_stay_id, 0)) = any_value(quotable.rooms_asked)
)

SELECT
    whole.source,
    whole.property_id,
    whole.market,
    whole.product_type,
    whole.check_in,
    whole.nights,
    whole.party,
    whole.currency_asked,
    whole.room_id,
    whole.board_id,
    whole.policy_key,
    whole.currency,
    whole.sweep_id,
    whole.search_id,
    search.started_at AS searched_at,
    whole.rooms,
    coalesce(search.sent_property_id, whole.property_id) AS sent_property_id
FROM whole
INNER JOIN lake.search AS search
    ON
        search.sweep_id = whole.sweep_id
        AND search.search_id = whole.search_id
LEFT JOIN mart.property_map AS pair ON pair.branded_id = whole.property_id
CROSS JOIN wanted
WHERE pair.unbranded_id IS NULL OR pair.unbranded_id = coalesce(search.sent_property_id, whole.property_id)
QUALIFY
    row_number() OVER (
        PARTITION BY whole.property_id, whole.first_offer_key ORDER BY whole.source ASC, whole.search_id ASC
    ) = 1
ORDER BY
    md5(concat_ws('|', wanted.seed, whole.first_offer_key)) ASC,
    whole.first_offer_key ASC
LIMIT (SELECT one_row.size FROM wanted AS one_row)
