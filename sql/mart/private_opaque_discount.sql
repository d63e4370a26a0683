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
-- Both sides come from one pass over the offers: reading them once for each side takes twice as long.
WITH side AS (
    SELECT
        pair.branded_id,
        pair.unbranded_id,
        unnest([TRUE, FALSE]) AS is_branded,
        unnest([pair.branded_id, pair.unbranded_id]) AS property_id
    FROM mart.property_map AS pair
)

SELECT
    offer.match_grade,
    side.branded_id,
    side.unbranded_id,
    offer.market,
    offer.product_type,
    any_value(offer.check_in) AS check_in,
    any_value(offer.nights) AS nights,
    any_value(offer.party) AS party,
    offer.currency_asked,
    offer.currency,
    any_value(offer.room_no) AS room_no,
    any_value(offer.board_family) FILTER (WHERE side.is_branded) AS board_family,
    any_value(offer.total) FILTER (WHERE side.is_branded) AS branded_total,
    any_value(offer.total) FILTER (WHERE NOT side.is_branded) AS unbranded_total,
    (branded_total - unbranded_total)::DECIMAL(18, 4) AS discount,
    100 * (1 - unbranded_total::DOUBLE / branded_total::DOUBLE) AS discount_pct,
    any_value(offer.offer_key) FILTER (WHERE side.is_branded) AS branded_offer_key,
    any_value(offer.offer_key) FILTER (WHERE NOT side.is_branded) AS unbranded_offer_key,
    any_value(offer.seen_sweep_id) AS seen_sweep_id,
    any_value(offer.seen_search_id) FILTER (WHERE side.is_branded) AS branded_search_id,
    any_value(offer.seen_offer_no) FILTER (WHERE side.is_branded) AS branded_offer_no,
    any_value(offer.seen_search_id) FILTER (WHERE NOT side.is_branded) AS unbranded_search_id,
    any_value(offer.seen_offer_no) FILTER (WHERE NOT side.is_branded) AS unbranded_offer_no
FROM mart.comparable_offer AS offer
INNER JOIN side ON side.property_id = offer.property_id
WHERE
    offer.source = 'multi'
    AND offer.match_grade IN ('board_family', 'cheapest')
GROUP BY
    side.branded_id,
    side.unbranded_id,
    offer.match_grade,
    offer.match_key,
    offer.market,
    offer.product_type,
    offer.currency_asked,
    offer.currency
HAVING bool_or(side.is_branded) AND NOT bool_and(side.is_branded)
