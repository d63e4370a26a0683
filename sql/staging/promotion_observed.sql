-- One row per source and offer key that this sweep changes, unless it is new: its promotion from this sweep on.
-- Rounding is no promotion (see mart.taken_off). While an offer is gone or has no price, its promotion may be running.
-- promoted_from: First sighting of the promotion; NULL: seen without one, or none has begun.
-- plain_seen_at: Last sighting without a promotion before that, or so far; NULL: none, or this sweep.
-- promoted_seen_at: Last sighting with it before the offer went or lost its price; NULL: none, or this sweep.
-- promotion_key: Hash of the promotions named then; NULL: none, or those of this sweep.
-- least_depth_pct: Smallest depth of the promotion, 100 x (1 - total / pre_promo_total); NULL: none has begun.
-- most_depth_pct: Largest depth of it; NULL: none has begun.
-- is_ended: Whether the sweep saw the offer without the promotion that it was last seen with.
WITH changed AS (
    SELECT
        change.source,
        change.property_id,
        change.offer_key,
        change.changed_at,
        change.total IS NOT NULL AS is_priced,
        coalesce(mart.taken_off(change.total, change.pre_promo_total, unit.minor_unit) > 0, FALSE) AS is_below,
        CASE WHEN is_below THEN mart.depth_pct(change.total, change.pre_promo_total) END AS depth_pct,
        before.promoted_from,
        before.plain_seen_at,
        before.promoted_seen_at,
        before.promotion_key,
        before.least_depth_pct,
        before.most_depth_pct
    FROM night.offer_change AS change
    LEFT JOIN night.promotion_ending AS before
        ON
            before.source = change.source
            AND before.property_id = change.property_id
            AND before.offer_key = change.offer_key
    -- Only where it matters: most offers have no promotion.
    LEFT JOIN ref.currency AS unit
        ON unit.currency = CASE WHEN change.total < change.pre_promo_total THEN change.currency END
    WHERE change.change <> 'first'
)

SELECT
    changed.source,
    changed.property_id,
    changed.offer_key,
    CASE
        WHEN changed.is_below THEN coalesce(changed.promoted_from, changed.changed_at)
        WHEN NOT changed.is_priced THEN changed.promoted_from
    END AS promoted_from,
    CASE WHEN changed.is_below OR NOT changed.is_priced THEN changed.plain_seen_at END AS plain_seen_at,
    CASE WHEN NOT changed.is_priced THEN changed.promoted_seen_at END AS promoted_seen_at,
    CASE WHEN NOT changed.is_priced THEN changed.promotion_key END AS promotion_key,
    CASE
        WHEN changed.is_below OR NOT changed.is_priced THEN least(changed.least_depth_pct, changed.depth_pct)
    END AS least_depth_pct,
    CASE
        WHEN changed.is_below OR NOT changed.is_priced THEN greatest(changed.most_depth_pct, changed.depth_pct)
    END AS most_depth_pct,
    changed.is_priced AND NOT changed.is_below AND changed.promoted_from IS NOT NULL AS is_ended
FROM changed
