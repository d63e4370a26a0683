-- One row per source and offer key of the sweep: the cheapest where an answer names a key twice.
-- Keys that are named twice are few: they alone are sorted, by their key and their price. Sorting all rows, as wide as
-- they are, doubled the cost of this.
WITH keyed AS MATERIALIZED (
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
        offer.room_stay_id,
        offer.room_id,
        offer.room_name,
        offer.board_id,
        offer.board_name,
        offer.policy_key,
        offer.refundability,
        offer.free_cancel_hours,
        offer.free_cancel_until,
        offer.product_id,
        offer.total,
        offer.pre_promo_total,
        offer.discount_pct,
        offer.floor,
        offer.available_rooms,
        offer.promotion_key,
        offer.included_charges,
        offer.excluded_charges,
        offer.resort_fee,
        offer.child_resort_fee,
        offer.city_taxes,
        offer.hotel_service_fee,
        offer.search_id,
        offer.offer_no,
        cell.cell_key,
        cell.is_answered_whole AS is_whole,
        mart.offer_key(
            cell.cell_key, offer.room_stay_id, offer.room_id, offer.board_id, offer.policy_key, offer.currency
        ) AS offer_key
    FROM sweep_files.offer AS offer
    INNER JOIN night.cell_observed AS cell
        ON
            cell.search_id = offer.search_id
            AND cell.property_id = offer.property_id
),

named_again AS (
    SELECT
        keyed.source,
        keyed.property_id,
        keyed.offer_key
    FROM keyed
    GROUP BY keyed.source, keyed.property_id, keyed.offer_key
    HAVING count(*) > 1
),

dearer AS (
    SELECT
        keyed.search_id,
        keyed.offer_no
    FROM keyed
    SEMI JOIN named_again
        ON
            named_again.source = keyed.source
            AND named_again.property_id = keyed.property_id
            AND named_again.offer_key = keyed.offer_key
    QUALIFY
        row_number() OVER (
            PARTITION BY keyed.source, keyed.property_id, keyed.offer_key
            ORDER BY keyed.total ASC NULLS LAST, keyed.search_id ASC, keyed.offer_no ASC
        ) > 1
)

SELECT keyed.*
FROM keyed
ANTI JOIN dearer
    ON
        dearer.search_id = keyed.search_id
        AND dearer.offer_no = keyed.offer_no
