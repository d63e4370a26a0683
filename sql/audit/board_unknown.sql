-- One row per offer with a board basis that the supplier's document does not list.
SELECT
    offer.market,
    offer.property_id,
    offer.search_id,
    offer.offer_no,
    'the board id is ' || offer.board_id || coalesce(' (' || offer.board_name || ')', '') AS reason
FROM sweep_files.offer AS offer
ANTI JOIN ref.board_basis AS board ON board.board_id = offer.board_id
WHERE offer.board_id IS NOT NULL
