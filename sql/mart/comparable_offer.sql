-- One row per match grade, source and offer on sale that represents its group in comparisons of that grade.
-- match_grade: `exact`: same room, board and policy; `board_family`: cheapest of the family; `cheapest`: of the cell.
-- match_key: Hash of what offers of this grade must share besides the property. Valid within one query: do not store.
-- room_no: Number of the requested room that this offer is for, from 0; 0 where the answer does not say.
-- Totals of several rooms are never added up here: each requested room is compared alone. Among equals, the lowest key
-- represents the group. If part of a property's answer was unreadable or refused, the cheapest offer may be in it: no
-- offer then represents a group that this part may belong to. A list has one product per room, board and policy, so
-- its exact pairs are kept.
SELECT -- noqa: AM07
    'exact' AS match_grade,
    hash(
        offer.source,
        offer.seen_sweep_id,
        offer.check_in,
        offer.nights,
        offer.party,
        coalesce(offer.room_stay_id, 0),
        offer.room_id,
        offer.board_id,
        offer.policy_key
    ) AS match_key,
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
    offer.seen_offer_no
FROM mart.offer_latest AS offer
WHERE
    offer.total > 0
    AND offer.currency IS NOT NULL
    AND offer.room_id IS NOT NULL
    AND offer.board_id IS NOT NULL
    AND (offer.is_whole OR offer.source = 'multi')

UNION ALL BY NAME

SELECT
    'board_family' AS match_grade,
    hash(
        family.source,
        family.seen_sweep_id,
        family.check_in,
        family.nights,
        family.party,
        family.room_no,
        family.board_family
    ) AS match_key,
    family.* EXCLUDE (cheapest), -- noqa: RF02
    unnest(family.cheapest) -- noqa: AL03
FROM (
    SELECT
        offer.source,
        offer.property_id,
        offer.cell_key,
        offer.currency,
        coalesce(offer.room_stay_id, 0) AS room_no,
        offer.seen_sweep_id,
        offer.board_family,
        offer.market,
        offer.product_type,
        any_value(offer.check_in) AS check_in,
        any_value(offer.nights) AS nights,
        any_value(offer.party) AS party,
        any_value(offer.currency_asked) AS currency_asked,
        arg_min(
            {
                'offer_key': offer.offer_key,
                'room_id': offer.room_id,
                'board_id': offer.board_id,
                'policy_key': offer.policy_key,
                'promotion_key': offer.promotion_key,
                'total': offer.total,
                'pre_promo_total': offer.pre_promo_total,
                'floor': offer.floor,
                'included_charges': offer.included_charges,
                'seen_search_id': offer.seen_search_id,
                'seen_offer_no': offer.seen_offer_no
            },
            (offer.total, offer.offer_key)
        ) AS cheapest
    FROM mart.offer_latest AS offer
    WHERE
        offer.total > 0
        AND offer.currency IS NOT NULL
        AND offer.is_whole
    -- Market and product type follow from the cell; as group keys, they let a query that filters on them read less.
    GROUP BY
        offer.source,
        offer.property_id,
        offer.market,
        offer.product_type,
        offer.cell_key,
        offer.currency,
        coalesce(offer.room_stay_id, 0),
        offer.seen_sweep_id,
        offer.board_family
) AS family

UNION ALL BY NAME

SELECT
    'cheapest' AS match_grade,
    hash(cell.source, cell.seen_sweep_id, cell.check_in, cell.nights, cell.party, cell.room_no) AS match_key,
    cell.* EXCLUDE (cheapest), -- noqa: RF02
    unnest(cell.cheapest) -- noqa: AL03
FROM (
    SELECT
        offer.source,
        offer.property_id,
        offer.cell_key,
        offer.currency,
        coalesce(offer.room_stay_id, 0) AS room_no,
        offer.seen_sweep_id,
        offer.market,
        offer.product_type,
        any_value(offer.check_in) AS check_in,
        any_value(offer.nights) AS nights,
        any_value(offer.party) AS party,
        any_value(offer.currency_asked) AS currency_asked,
        arg_min(
            {
                'offer_key': offer.offer_key,
                'board_family': offer.board_family,
                'room_id': offer.room_id,
                'board_id': offer.board_id,
                'policy_key': offer.policy_key,
                'promotion_key': offer.promotion_key,
                'total': offer.total,
                'pre_promo_total': offer.pre_promo_total,
                'floor': offer.floor,
                'included_charges': offer.included_charges,
                'seen_search_id': offer.seen_search_id,
                'seen_offer_no': offer.seen_offer_no
            },
            (offer.total, offer.offer_key)
        ) AS cheapest
    FROM mart.offer_latest AS offer
    WHERE
        offer.total > 0
        AND offer.currency IS NOT NULL
        AND offer.is_whole
    -- Market and product type follow from the cell; as group keys, they let a query that filters on them read less.
    GROUP BY
        offer.source,
        offer.property_id,
        offer.market,
        offer.product_type,
        offer.cell_key,
        offer.currency,
        coalesce(offer.room_stay_id, 0),
        offer.seen_sweep_id
) AS cell
