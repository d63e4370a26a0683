-- One row per source and offer key of the sweep: the cheapest if an answer contains a key twice.
-- before: State of the key before this sweep, as far as rows without a change need it; NULL: it is new.
-- change: What the sweep changes: `first` seen, `back`, its `value`; NULL: nothing.
-- The state is joined here, once for all that compare a night with it. A known offer takes its key from there, as
-- looking it up is faster than hashing it.
-- Keys that occur twice are found first, by the columns that make up a key: sorting all rows in full width doubled the
-- cost, and keeping them twice took more memory than a range may use.
WITH asked AS NOT MATERIALIZED (
    SELECT
        offer.source,
        offer.property_id,
        cell.cell_key,
        offer.room_stay_id,
        offer.room_id,
        offer.board_id,
        offer.policy_key,
        offer.currency,
        offer.total,
        offer.search_id,
        offer.offer_no,
        hash(
            offer.source, cell.cell_key, offer.room_stay_id, offer.room_id, offer.board_id, offer.policy_key,
            offer.currency
        ) AS named_by
    FROM sweep_files.offer AS offer
    INNER JOIN night.cell_observed AS cell
        ON
            cell.search_id = offer.search_id
            AND cell.property_id = offer.property_id
),

named_again AS (
    SELECT asked.named_by
    FROM asked
    GROUP BY asked.named_by
    HAVING count(*) > 1
),

dearer AS (
    SELECT
        asked.search_id,
        asked.offer_no
    FROM asked
    SEMI JOIN named_again ON named_again.named_by = asked.named_by
    QUALIFY
        row_number() OVER (
            PARTITION BY
                asked.source,
                asked.property_id,
                asked.cell_key,
                asked.room_stay_id,
                asked.room_id,
                asked.board_id,
                asked.policy_key,
                asked.currency
            ORDER BY asked.total ASC NULLS LAST, asked.search_id ASC, asked.offer_no ASC
        ) > 1
)

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
    coalesce(
        before.offer_key,
        mart.offer_key(
            cell.cell_key, offer.room_stay_id, offer.room_id, offer.board_id, offer.policy_key, offer.currency
        )
    ) AS offer_key,
    CASE
        WHEN before.offer_key IS NOT NULL
            THEN {
                'is_offered': before.is_offered,
                'total': before.total,
                'pre_promo_total': before.pre_promo_total,
                'change': before.change,
                'valid_from': before.valid_from,
                'first_seen_at': before.first_seen_at,
                'last_seen_at': before.last_seen_at,
                'snapshots': before.snapshots,
                'longest_unseen_days': before.longest_unseen_days,
                'began_sweep_id': before.began_sweep_id,
                'began_search_id': before.began_search_id,
                'began_offer_no': before.began_offer_no,
                'is_whole': before.is_whole
            }
    END AS before,
    mart.change_of(
        CASE
            WHEN before.offer_key IS NOT NULL
                THEN {
                    'is_offered': before.is_offered,
                    'total': before.total,
                    'pre_promo_total': before.pre_promo_total,
                    'discount_pct': before.discount_pct,
                    'floor': before.floor,
                    'available_rooms': before.available_rooms,
                    'promotion_key': before.promotion_key
                }
        END,
        offer.total,
        offer.pre_promo_total,
        offer.discount_pct,
        offer.floor,
        offer.available_rooms,
        offer.promotion_key
    ) AS change
FROM sweep_files.offer AS offer
INNER JOIN night.cell_observed AS cell
    ON
        cell.search_id = offer.search_id
        AND cell.property_id = offer.property_id
LEFT JOIN state.offer_open AS before
    ON
        before.source = offer.source
        AND before.property_id = offer.property_id
        AND before.cell_key = cell.cell_key
        AND before.room_stay_id IS NOT DISTINCT FROM offer.room_stay_id
        AND before.room_id IS NOT DISTINCT FROM offer.room_id
        AND before.board_id IS NOT DISTINCT FROM offer.board_id
        AND before.policy_key = offer.policy_key
        AND before.currency IS NOT DISTINCT FROM offer.currency
ANTI JOIN dearer
    ON
        dearer.search_id = offer.search_id
        AND dearer.offer_no = offer.offer_no
