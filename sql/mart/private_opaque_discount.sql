-- One row per match grade and list offer of an unbranded id whose branded property was seen in one sweep. PRIVATE.
-- It reveals which unbranded id is which property, from the user's own map, so it is never part of a report, a page or
-- a shared file. Room ids differ between the two, so no pair is exact. Detail answers of a mapped property are always
-- of its unbranded id, so only list answers are compared.
-- branded_id: Property id of the branded offer.
-- unbranded_id: Property id of the unbranded offer.
-- branded_total: Total of the branded offer, in currency.
-- unbranded_total: Total of the unbranded offer, in currency.
-- discount: branded_total - unbranded_total, in currency; > 0: unbranded is cheaper.
-- discount_pct: 100 x (1 - unbranded_total / branded_total); > 0: unbranded is cheaper.
-- branded_offer_key: Offer key of the branded offer.
-- unbranded_offer_key: Offer key of the unbranded offer.
-- branded_search_id: Search of the last observation of the branded offer.
-- branded_offer_no: Number of the offer in that observation.
-- unbranded_search_id: Search of the last observation of the unbranded offer.
-- unbranded_offer_no: Number of the offer in that observation.
SELECT
    branded.match_grade,
    pair.branded_id,
    pair.unbranded_id,
    branded.market,
    branded.product_type,
    branded.check_in,
    branded.nights,
    branded.party,
    branded.currency_asked,
    branded.currency,
    branded.room_no,
    branded.board_family,
    branded.total AS branded_total,
    unbranded.total AS unbranded_total,
    (branded.total - unbranded.total)::DECIMAL(18, 4) AS discount,
    100 * (1 - unbranded.total::DOUBLE / branded.total::DOUBLE) AS discount_pct,
    branded.offer_key AS branded_offer_key,
    unbranded.offer_key AS unbranded_offer_key,
    branded.seen_sweep_id,
    branded.seen_search_id AS branded_search_id,
    branded.seen_offer_no AS branded_offer_no,
    unbranded.seen_search_id AS unbranded_search_id,
    unbranded.seen_offer_no AS unbranded_offer_no
FROM mart.property_map AS pair
INNER JOIN mart.comparable_offer AS branded ON branded.property_id = pair.branded_id
INNER JOIN mart.comparable_offer AS unbranded
    ON
        unbranded.property_id = pair.unbranded_id
        AND unbranded.match_grade = branded.match_grade
        AND unbranded.match_key = branded.match_key
        AND unbranded.market = branded.market
        AND unbranded.product_type = branded.product_type
        AND unbranded.currency = branded.currency
        AND unbranded.currency_asked IS NOT DISTINCT FROM branded.currency_asked
WHERE
    branded.source = 'multi'
    AND branded.match_grade IN ('board_family', 'cheapest')
