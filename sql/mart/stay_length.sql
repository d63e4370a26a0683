-- One row per offer of several nights, compared with the one-night offers of these nights in the same sweep.
-- The one-night offers have the same room, board, policy and party.
-- nights_found: Number of nights with such a one-night offer; comparable if equal to nights.
-- nights_total: Sum of the totals of those one-night offers, in currency; NULL: not all were seen.
-- saving: nights_total - total, in currency; < 0: the longer stay is dearer.
-- discount_pct_of_nights: 100 x (1 - total / nights_total); < 0: the longer stay is dearer; NULL: not comparable.
-- Offers of detail answers that were partly unreadable are left out: a dearer product may represent the key.
WITH offer AS NOT MATERIALIZED (
    SELECT
        latest.*,
        -- All that an offer shares with its one-night offers besides property and date, in one number, valid within the
        -- query: joining by thirteen columns takes twice as long.
        hash(
            latest.source,
            latest.room_id,
            latest.board_id,
            latest.policy_key,
            latest.market,
            latest.product_type,
            latest.party,
            latest.currency,
            latest.seen_sweep_id,
            coalesce(latest.currency_asked, '~'),
            coalesce(latest.room_stay_id, 0)
        ) AS terms,
        -- Without one of these, no other offer is known to be of the same room and terms.
        latest.room_id IS NOT NULL AND latest.board_id IS NOT NULL AND latest.currency IS NOT NULL AS is_known
    FROM mart.offer_latest AS latest
    WHERE latest.is_whole OR latest.source = 'multi'
),

night AS (
    SELECT
        long.*,
        (long.check_in + unnest(range(long.nights::BIGINT))::INTEGER)::DATE AS night_date
    FROM offer AS long
    WHERE long.nights > 1 AND long.total > 0
),

found AS (
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
        CASE WHEN count(single.total) = count(*) THEN sum(single.total)::DECIMAL(18, 4) END AS nights_total
    FROM night
    LEFT JOIN offer AS single
        ON
            single.nights = 1
            AND single.is_known
            AND single.property_id = night.property_id
            AND single.check_in = night.night_date
            AND single.terms = night.terms
    GROUP BY night.source, night.property_id, night.offer_key
)

SELECT
    found.source,
    found.property_id,
    found.offer_key,
    found.market,
    found.product_type,
    found.check_in,
    found.nights,
    found.party,
    found.currency,
    found.room_id,
    found.board_id,
    found.policy_key,
    found.seen_sweep_id,
    found.total,
    found.nights_found,
    found.nights_total,
    (found.nights_total - found.total)::DECIMAL(18, 4) AS saving,
    100 * (1 - found.total::DOUBLE / found.nights_total::DOUBLE) AS discount_pct_of_nights
FROM found
