-- One row per like-for-like key (property, stay, party, …) and instant of a selling price, as the newest file has it.
SELECT price.*
FROM lake.selling_price AS price
QUALIFY
    row_number() OVER (
        PARTITION BY
            price.property_id,
            price.market,
            price.product_type,
            price.check_in,
            price.nights,
            price.party,
            price.currency,
            price.observed_at,
            price.room_id,
            price.board_id,
            price.policy_key,
            price.channel
        ORDER BY price.input_id DESC
    ) = 1
