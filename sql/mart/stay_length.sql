-- One row per offer of several nights, compared with the one-night offers of these nights in the same sweep.
-- The one-night offers have the same room, board, policy and party.
-- nights_found: Number of nights with such a one-night offer; comparable if equal to nights.
-- nights_total: Sum of the totals of those one-night offers, in currency; NULL: not all were seen.
-- saving: nights_total - total, in currency; < 0: the longer stay is dearer.
-- discount_pct_of_nights: 100 x (1 - total / nights_total); < 0: the longer stay is dearer; NULL: not comparable.
WITH offer AS NOT MATERIALIZED (
    SELECT
        latest.source,
        latest.property_id,
        latest.offer_key,
        latest.check_in,
        latest.nights,
        latest.total,
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
),

night AS (
    SELECT
        long.source,
        long.property_id,
        long.offer_key,
        long.terms,
        (long.check_in + unnest(range(long.nights::BIGINT))::INTEGER)::DATE AS night_date
    FROM offer AS long
    WHERE long.nights > 1 AND long.total > 0
),

found AS (
    SELECT
        night.source,
        night.property_id,
        night.offer_key,
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
    long.source,
    long.property_id,
    long.offer_key,
    long.market,
    long.product_type,
    long.check_in,
    long.nights,
    long.party,
    long.currency,
    long.room_id,
    long.board_id,
    long.policy_key,
    long.seen_sweep_id,
    long.total,
    found.nights_found,
    found.nights_total,
    (found.nights_total - long.total)::DECIMAL(18, 4) AS saving,
    100 * (1 - long.total::DOUBLE / found.nights_total::DOUBLE) AS discount_pct_of_nights
FROM mart.offer_latest AS long
INNER JOIN found
    ON
        found.source = long.source
        AND found.property_id = long.property_id
        AND found.offer_key = long.offer_key
