-- What a finding about a selling price is about, as text: its like-for-like key, and the source of the floor.
CREATE OR REPLACE MACRO mart.price_subject(
    source, property_id, market, check_in, nights, party, currency, room_id, board_id, policy_key, channel
) AS (
    concat_ws(
        '|',
        source,
        property_id,
        market,
        check_in,
        nights,
        party,
        currency,
        coalesce(room_id::VARCHAR, '~'),
        coalesce(board_id::VARCHAR, '~'),
        coalesce(policy_key::VARCHAR, '~'),
        coalesce(channel, '~')
    )
)
