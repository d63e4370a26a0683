-- Stable key of an offer: the first 63 bits of the MD5 of the cell's key and what was offered in it. List and detail
-- answers and quotes have one key for one offer; a price series is a key and a source.
CREATE OR REPLACE MACRO mart.offer_key(cell_key, room_stay_id, room_id, board_id, policy_key, currency) AS (
    md5_number_lower(
        concat_ws(
            '|',
            cell_key,
            coalesce(room_stay_id::VARCHAR, '~'),
            coalesce(room_id::VARCHAR, '~'),
            coalesce(board_id::VARCHAR, '~'),
            policy_key,
            coalesce(currency, '~')
        )
    ) >> 1
)::BIGINT
