-- One row per match grade, source and offer on sale that represents its group in comparisons of that grade.
-- match_grade: `exact`: same room, board and policy; `board_family`: cheapest of the family; `cheapest`: of the cell.
-- match_key: Hash of what offers of this grade must share besides the property. Valid within one query: do not store.
-- room_no: Number of the requested room that this offer is for, from 0; 0 where the answer does not say.
-- Totals of several rooms are never added up here: each requested room is compared alone. Among equals, the lowest key
-- represents the group. If part of a property's answer was unreadable or refused, the cheapest offer may be in it: no
-- offer then represents a group that this part may belong to. A list has one product per room, board and policy, so
-- its exact pairs are kept.
WITH candidate AS NOT MATERIALIZED (
    SELECT
        offer.source,
        offer.property_id,
        offer.market,
        offer.product_type,
        offer.check_in,
        offer.nights,
        offer.party,
        offer.currency_asked,
        offer.currency,
        coalesce(offer.room_stay_id, 0) AS room_no,
        offer.board_family,
        offer.cell_key,
        offer.offer_key,
        offer.room_id,
        offer.board_id,
        offer.policy_key,
        offer.promotion_key,
        offer.total,
        offer.pre_promo_total,
        offer.floor,
        offer.included_charges,
        offer.seen_sweep_id,
        offer.seen_search_id,
        offer.seen_offer_no,
        offer.is_whole
    FROM mart.offer_latest AS offer
    WHERE
        offer.total > 0
        AND offer.currency IS NOT NULL
)

SELECT
    'exact' AS match_grade,
    hash(
        offer.source,
        offer.seen_sweep_id,
        offer.check_in,
        offer.nights,
        offer.party,
        offer.room_no,
        offer.room_id,
        offer.board_id,
        offer.policy_key
    ) AS match_key,
    offer.* EXCLUDE (is_whole)
FROM candidate AS offer
WHERE
    offer.room_id IS NOT NULL
    AND offer.board_id IS NOT NULL
    AND (offer.is_whole OR offer.source = 'multi')

UNION ALL BY NAME

SELECT
    'board_family' AS match_grade,
    hash(
        offer.source,
        offer.seen_sweep_id,
        offer.check_in,
        offer.nights,
        offer.party,
        offer.room_no,
        offer.board_family
    ) AS match_key,
    offer.* EXCLUDE (is_whole)
FROM candidate AS offer
INNER JOIN (
    SELECT
        other.source,
        other.property_id,
        other.market,
        other.product_type,
        min({ 'total': other.total, 'offer_key': other.offer_key })['offer_key'] AS offer_key
    FROM candidate AS other
    WHERE other.is_whole
    -- Market and product type follow from the cell; as keys, they let a query that filters on them read less.
    GROUP BY
        other.source,
        other.property_id,
        other.market,
        other.product_type,
        other.cell_key,
        other.currency,
        other.room_no,
        other.seen_sweep_id,
        other.board_family
) AS cheapest
    ON
        cheapest.source = offer.source
        AND cheapest.property_id = offer.property_id
        AND cheapest.market = offer.market
        AND cheapest.product_type = offer.product_type
        AND cheapest.offer_key = offer.offer_key

UNION ALL BY NAME

SELECT
    'cheapest' AS match_grade,
    hash(
        offer.source,
        offer.seen_sweep_id,
        offer.check_in,
        offer.nights,
        offer.party,
        offer.room_no
    ) AS match_key,
    offer.* EXCLUDE (is_whole)
FROM candidate AS offer
INNER JOIN (
    SELECT
        other.source,
        other.property_id,
        other.market,
        other.product_type,
        min({ 'total': other.total, 'offer_key': other.offer_key })['offer_key'] AS offer_key
    FROM candidate AS other
    WHERE other.is_whole
    -- Market and product type follow from the cell; as keys, they let a query that filters on them read less.
    GROUP BY
        other.source,
        other.property_id,
        other.market,
        other.product_type,
        other.cell_key,
        other.currency,
        other.room_no,
        other.seen_sweep_id
) AS cheapest
    ON
        cheapest.source = offer.source
        AND cheapest.property_id = offer.property_id
        AND cheapest.market = offer.market
        AND cheapest.product_type = offer.product_type
        AND cheapest.offer_key = offer.offer_key
