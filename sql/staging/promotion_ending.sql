-- One row per source and offer key of night.offer_ending that may have a promotion: how it stood before this sweep.
-- An offer that has not changed since it was first seen shows its promotion itself; for others, the state keeps it.
-- promoted_from: First sighting of the promotion; NULL: last seen without one, or never with a price.
-- plain_seen_at: Last sighting without a promotion before that, or so far; NULL: none.
-- promoted_seen_at: Last sighting with the promotion; NULL: none has begun.
-- promotion_key: Hash of the promotions named then.
-- least_depth_pct: Smallest depth of the promotion, 100 x (1 - total / pre_promo_total); NULL: none has begun.
-- most_depth_pct: Largest depth of it; NULL: none has begun.
WITH before AS (
    SELECT
        offer.source,
        offer.property_id,
        offer.offer_key,
        offer.last_seen_at,
        offer.valid_from,
        offer.total,
        offer.pre_promo_total,
        offer.promotion_key,
        offer.is_offered AND offer.total IS NOT NULL AS is_priced,
        coalesce(mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) > 0, FALSE) AS is_below
    FROM night.offer_ending AS offer
    -- Only where it matters: most offers have no promotion.
    LEFT JOIN ref.currency AS unit
        ON unit.currency = CASE WHEN offer.total < offer.pre_promo_total THEN offer.currency END
)

SELECT
    before.source,
    before.property_id,
    before.offer_key,
    CASE
        WHEN held.offer_key IS NOT NULL THEN held.promoted_from
        WHEN before.is_priced AND before.is_below THEN before.valid_from
    END AS promoted_from,
    CASE
        WHEN held.offer_key IS NOT NULL THEN held.plain_seen_at
        WHEN before.is_priced AND NOT before.is_below THEN before.last_seen_at
    END AS plain_seen_at,
    CASE
        WHEN before.is_priced AND before.is_below THEN before.last_seen_at
        ELSE held.promoted_seen_at
    END AS promoted_seen_at,
    CASE
        WHEN before.is_priced AND before.is_below THEN before.promotion_key
        ELSE held.promotion_key
    END AS promotion_key,
    CASE
        WHEN held.offer_key IS NOT NULL THEN held.least_depth_pct
        WHEN before.is_priced AND before.is_below THEN mart.depth_pct(before.total, before.pre_promo_total)
    END AS least_depth_pct,
    CASE
        WHEN held.offer_key IS NOT NULL THEN held.most_depth_pct
        WHEN before.is_priced AND before.is_below THEN mart.depth_pct(before.total, before.pre_promo_total)
    END AS most_depth_pct
FROM before
LEFT JOIN state.promotion_open AS held
    ON
        held.source = before.source
        AND held.property_id = before.property_id
        AND held.offer_key = before.offer_key
WHERE held.offer_key IS NOT NULL OR before.is_priced
