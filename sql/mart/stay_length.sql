-- One row per offer of several nights, compared with the one-night offers of these nights in the same sweep.
-- The one-night offers have the same room, board, policy and party.
-- nights_found: Number of nights with such a one-night offer; comparable if equal to nights.
-- nights_total: Sum of the totals of those one-night offers, in currency; NULL: not all were seen.
-- saving: nights_total - total, in currency; < 0: the longer stay is dearer.
-- discount_pct_of_nights: 100 x (1 - total / nights_total); < 0: the longer stay is dearer; NULL: not comparable.
WITH night AS (
    SELECT
        long.source,
        long.property_id,
        long.offer_key,
        long.market,
        long.product_type,
        long.nights,
        long.party,
        long.currency_asked,
        long.currency,
        long.room_stay_id,
        long.room_id,
        long.board_id,
        long.policy_key,
        long.seen_sweep_id,
        long.total,
        long.check_in,
        (long.check_in + unnest(range(long.nights::BIGINT))::INTEGER)::DATE AS night_date
    FROM mart.offer_latest AS long
    WHERE long.nights > 1 AND long.total > 0
)

SELECT
    night.source,
    night.property_id,
    night.offer_key,
    any_value(night.market) AS market,
    any_value(night.product_type) AS product_type,
    any_value(night.check_in) AS check_in,
    any_value(night.nights) AS nights,
    any_value(night.party) AS party,
    any_value(night.currency) AS currency,
    any_value(night.room_id) AS room_id,
    any_value(night.board_id) AS board_id,
    any_value(night.policy_key) AS policy_key,
    any_value(night.seen_sweep_id) AS seen_sweep_id,
    any_value(night.total) AS total,
    count(single.total) AS nights_found,
    CASE WHEN count(single.total) = count(*) THEN sum(single.total)::DECIMAL(18, 4) END AS nights_total,
    (nights_total - any_value(night.total))::DECIMAL(18, 4) AS saving, -- noqa: RF02
    100 * (1 - any_value(night.total)::DOUBLE / nights_total::DOUBLE) AS discount_pct_of_nights -- noqa: RF02
FROM night
LEFT JOIN mart.offer_latest AS single
    ON
        single.nights = 1
        AND single.source = night.source
        AND single.property_id = night.property_id
        AND single.check_in = night.night_date
        AND single.room_id = night.room_id
        AND single.board_id = night.board_id
        AND single.policy_key = night.policy_key
        AND single.market = night.market
        AND single.product_type = night.product_type
        AND single.party = night.party
        AND single.currency = night.currency
        AND single.seen_sweep_id = night.seen_sweep_id
        AND coalesce(single.currency_asked, '~') = coalesce(night.currency_asked, '~')
        AND coalesce(single.room_stay_id, 0) = coalesce(night.room_stay_id, 0)
GROUP BY night.source, night.property_id, night.offer_key
