-- One row per match grade below exact, source, cell, room, currency and board family of the sweep: its cheapest offer.
-- The groups are those of mart.comparable_offer, which defines the offer that represents one. board_family is '' for
-- the grade `cheapest`, whose groups contain every board.
WITH family AS (
    SELECT
        offer.source,
        offer.property_id,
        offer.cell_key,
        coalesce(offer.room_stay_id, 0) AS room_no,
        offer.currency,
        coalesce(board.family, 'other') AS board_family,
        min(offer.total) AS total,
        arg_min(offer.offer_key, (offer.total, offer.offer_key)) AS offer_key
    FROM night.offer_observed AS offer
    LEFT JOIN ref.board_basis AS board ON board.board_id = offer.board_id
    WHERE
        offer.total > 0
        AND offer.currency IS NOT NULL
        AND offer.is_whole
    GROUP BY
        offer.source,
        offer.property_id,
        offer.cell_key,
        coalesce(offer.room_stay_id, 0),
        offer.currency,
        coalesce(board.family, 'other')
),

cheapest AS (
    SELECT
        'board_family' AS match_grade,
        family.*
    FROM family

    UNION ALL BY NAME

    SELECT
        'cheapest' AS match_grade,
        family.source,
        family.property_id,
        family.cell_key,
        family.room_no,
        family.currency,
        '' AS board_family,
        min(family.total) AS total,
        arg_min(family.offer_key, (family.total, family.offer_key)) AS offer_key
    FROM family
    GROUP BY family.source, family.property_id, family.cell_key, family.room_no, family.currency
)

SELECT
    cheapest.*,
    cell.market,
    cell.product_type,
    cell.check_in,
    cell.nights,
    cell.party,
    cell.currency_asked
FROM cheapest
INNER JOIN night.cell_observed AS cell
    ON
        cell.source = cheapest.source
        AND cell.property_id = cheapest.property_id
        AND cell.cell_key = cheapest.cell_key
