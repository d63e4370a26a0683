-- One row per source and offer key of the sweep: the cheapest where an answer names a key twice.
WITH keyed AS (
    SELECT
        offer.*,
        mart.cell_key(
            CASE offer.source WHEN 'multi' THEN 'multi' ELSE 'single' END,
            offer.property_id,
            offer.market,
            offer.product_type,
            offer.check_in,
            offer.nights,
            offer.party,
            offer.currency_asked
        ) AS cell_key
    FROM sweep_files.offer AS offer
)

SELECT
    keyed.*,
    mart.offer_key(
        keyed.cell_key, keyed.room_stay_id, keyed.room_id, keyed.board_id, keyed.policy_key, keyed.currency
    ) AS offer_key
FROM keyed
QUALIFY
    row_number() OVER (
        PARTITION BY keyed.source, keyed.property_id, offer_key -- noqa: RF03
        ORDER BY keyed.total ASC NULLS LAST, keyed.search_id ASC, keyed.offer_no ASC
    ) = 1
