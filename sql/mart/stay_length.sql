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

-- The one-night offers of one room and terms, by night. Looked up by offers of several nights, which then need no
-- GROUP BY: that copies all their columns, and a LIMIT has to wait for it.
in_order AS (
    SELECT
        offer.property_id,
        offer.terms,
        list_sort(list({ 'night': offer.check_in, 'total': offer.total })) AS singles
    FROM offer
    WHERE offer.nights = 1 AND offer.is_known AND offer.total IS NOT NULL
    GROUP BY offer.property_id, offer.terms
),

by_night AS (
    SELECT
        in_order.property_id,
        in_order.terms,
        list_transform(in_order.singles, LAMBDA single: single['night']) AS dates,
        list_transform(in_order.singles, LAMBDA single: single['total']) AS totals
    FROM in_order
),

placed AS (
    SELECT
        long.*,
        single.dates,
        single.totals,
        (long.check_in + long.nights::INTEGER - 1)::DATE AS last_night,
        list_position(single.dates, long.check_in) AS first_place,
        list_position(single.dates, last_night) AS last_place,
        -- Dates differ: as many places as nights hold all of them.
        coalesce(last_place - first_place + 1 = long.nights, FALSE) AS is_found
    FROM offer AS long
    LEFT JOIN by_night AS single ON single.property_id = long.property_id AND single.terms = long.terms
    WHERE long.nights > 1 AND long.total > 0
),

found AS (
    SELECT
        placed.*,
        CASE
            WHEN placed.is_found THEN placed.nights::BIGINT
            ELSE
                len(
                    list_filter(
                        coalesce(placed.dates, []),
                        LAMBDA night: night BETWEEN placed.check_in AND placed.last_night
                    )
                )::BIGINT
        END AS nights_found,
        CASE
            WHEN placed.is_found
                THEN list_sum(list_slice(placed.totals, placed.first_place, placed.last_place))::DECIMAL(18, 4)
        END AS nights_total
    FROM placed
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
