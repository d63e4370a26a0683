-- One row per source, offer key last seen below its price before promotions, and interval in which it had a price.
-- is_below: Whether it was below its price before promotions in the interval; by rounding only: FALSE.
-- latest_seen_at: Last sighting of the offer.
-- plain_before: Total of the interval before, if it was on sale without a promotion, in currency; NULL: it was not.
-- plain_seen_at: Last sighting without the running promotion before it began; NULL: it ran at the first sighting.
-- began_at: First sighting of the running promotion; see mart.promotion_episode.
-- dearest_plain: Highest total without a promotion in the reference_days up to plain_seen_at, in currency.
-- is_before: Whether the interval began before the promotion, and was last seen in the reference_days before it.
-- longest_unseen_days: Days: longest time between two observations of the offer, within its intervals or between two.
-- While it was seen to be gone, it cost nothing.
-- highest: Highest total of the offer ever seen, in currency.
-- is_only: Whether the offer has no other interval: it has cost the same, below that price, since its first sighting.
WITH latest AS NOT MATERIALIZED (
    SELECT
        offer.source,
        offer.property_id,
        offer.offer_key,
        offer.market,
        offer.product_type,
        offer.currency,
        offer.check_in,
        offer.first_seen_at,
        offer.valid_from,
        offer.last_seen_at,
        offer.total,
        offer.snapshots,
        offer.longest_unseen_days,
        unit.minor_unit
    FROM state.offer_open AS offer
    LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
    WHERE
        -- The second condition is known before the join; the third excludes what is only rounded.
        offer.is_offered
        AND offer.total < offer.pre_promo_total
        AND mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) > 0
),

-- Histories of more than one interval. An offer that has stayed the same needs no look at its history, and most have.
observed AS (
    SELECT
        history.source,
        history.property_id,
        history.offer_key,
        history.market,
        history.product_type,
        latest.currency,
        history.valid_from,
        history.last_seen_at,
        history.total,
        history.snapshots,
        history.longest_unseen_days,
        latest.last_seen_at AS latest_seen_at,
        promotion.promoted_from AS began_at,
        promotion.plain_seen_at,
        coalesce(mart.taken_off(history.total, history.pre_promo_total, latest.minor_unit) > 0, FALSE) AS is_below,
        lag(CASE WHEN history.is_offered AND NOT is_below THEN history.total END) OVER in_order
            AS plain_before,
        history.is_offered AND history.total IS NOT NULL AS is_priced,
        date_diff('day', mart.utc(lag(history.last_seen_at) OVER in_order), mart.utc(history.valid_from))
            AS days_unseen
    FROM mart.offer_history AS history
    -- An inner join, unlike a semi join, passes a filter on the property to both sides; and it reads keys only. The
    -- check-in is part of the key: by it, files of stays that have begun are skipped.
    INNER JOIN latest
        ON
            latest.source = history.source
            AND latest.property_id = history.property_id
            AND latest.offer_key = history.offer_key
            AND latest.check_in = history.check_in
            AND latest.valid_from > latest.first_seen_at
    INNER JOIN state.promotion_open AS promotion
        ON
            promotion.source = latest.source
            AND promotion.property_id = latest.property_id
            AND promotion.offer_key = latest.offer_key
    WINDOW
        in_order AS (
            PARTITION BY history.source, history.property_id, history.offer_key
            ORDER BY history.valid_from
        )
),

-- The values of each offer over all its intervals. Not joined as an aggregate of `observed`: DuckDB 2.0.0 waited
-- forever where a LIMIT ended that join over millions of offers, also without the optimizer that our sessions lack.
of_offer AS (
    SELECT
        observed.*,
        max(observed.total) FILTER (WHERE observed.is_priced) OVER of_key AS highest,
        greatest(max(observed.days_unseen) OVER of_key, max(observed.longest_unseen_days) OVER of_key)
            AS longest_unseen,
        max(observed.total) FILTER (
            WHERE observed.is_priced
            AND NOT observed.is_below
            AND mart.utc(observed.last_seen_at) >= mart.utc(observed.plain_seen_at) - to_days(analysis.reference_days)
        ) OVER of_key AS dearest_plain,
        analysis.reference_days
    FROM observed
    CROSS JOIN ref.analysis AS analysis
    WINDOW of_key AS (PARTITION BY observed.source, observed.property_id, observed.offer_key)
)

SELECT
    of_offer.source,
    of_offer.property_id,
    of_offer.offer_key,
    of_offer.market,
    of_offer.product_type,
    of_offer.currency,
    of_offer.valid_from,
    of_offer.last_seen_at,
    of_offer.total,
    of_offer.snapshots,
    of_offer.is_below,
    of_offer.latest_seen_at,
    of_offer.plain_before,
    of_offer.plain_seen_at,
    of_offer.began_at,
    of_offer.dearest_plain,
    of_offer.valid_from < of_offer.began_at
    AND mart.utc(of_offer.last_seen_at) >= mart.utc(of_offer.began_at) - to_days(of_offer.reference_days) AS is_before,
    of_offer.highest,
    of_offer.longest_unseen AS longest_unseen_days,
    FALSE AS is_only
FROM of_offer
WHERE of_offer.is_priced

UNION ALL

SELECT
    latest.source,
    latest.property_id,
    latest.offer_key,
    latest.market,
    latest.product_type,
    latest.currency,
    latest.valid_from,
    latest.last_seen_at,
    latest.total,
    latest.snapshots,
    TRUE AS is_below,
    latest.last_seen_at AS latest_seen_at,
    NULL AS plain_before,
    NULL AS plain_seen_at,
    latest.valid_from AS began_at,
    NULL AS dearest_plain,
    FALSE AS is_before,
    latest.total AS highest,
    latest.longest_unseen_days,
    TRUE AS is_only
FROM latest
WHERE latest.valid_from <= latest.first_seen_at
