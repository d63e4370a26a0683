-- One row per source, offer key and promotion: sightings below the price before promotions with no other between them.
-- While an offer is gone or not seen nothing is known, so a promotion that comes back with it goes on.
-- began_at: First sighting of the promotion.
-- plain_seen_at: Last sighting without it before; NULL: it ran when the offer was first seen, and may be older.
-- promoted_seen_at: Last sighting of it.
-- ended_at: First sighting without it after; NULL: none; it runs, or the offer is gone, or its stay began.
-- days: Days from its first sighting to its last: no shorter than this.
-- days_at_most: Days between the sightings without it around it; NULL: not bounded.
-- least_depth_pct: Least of 100 x (1 - total / pre_promo_total) in it.
-- most_depth_pct: Most of it.
-- promotion_keys: How many different sets of promotions were named in it; to be told of none counts as one.
-- is_running: Whether the last that is known of the offer is that it is on sale with this promotion.
WITH interval_seen AS (
    SELECT
        history.*,
        history.total < history.pre_promo_total AS is_below
    FROM mart.offer_history AS history
    WHERE history.is_offered AND history.total IS NOT NULL
),

-- Most offers are never promoted, and ordering them all is what would take the time.
ever AS (
    SELECT DISTINCT
        seen.source,
        seen.property_id,
        seen.offer_key
    FROM interval_seen AS seen
    WHERE seen.is_below
),

placed AS (
    SELECT
        seen.source,
        seen.property_id,
        seen.offer_key,
        seen.valid_from,
        seen.last_seen_at,
        seen.valid_to,
        seen.promotion_key,
        seen.market,
        seen.product_type,
        seen.check_in,
        seen.nights,
        seen.party,
        seen.currency,
        seen.room_id,
        seen.board_id,
        seen.policy_key,
        seen.is_below,
        100 * (1 - seen.total::DOUBLE / seen.pre_promo_total::DOUBLE) AS depth_pct,
        max(CASE WHEN seen.is_below IS NOT TRUE THEN seen.last_seen_at END) OVER earlier AS plain_seen_at,
        min(CASE WHEN seen.is_below IS NOT TRUE THEN seen.valid_from END) OVER later AS ended_at
    FROM interval_seen AS seen
    -- An inner join, unlike a semi join, hands a filter on the property on to both sides.
    INNER JOIN ever
        ON
            ever.source = seen.source
            AND ever.property_id = seen.property_id
            AND ever.offer_key = seen.offer_key
    WINDOW
        earlier AS (
            PARTITION BY seen.source, seen.property_id, seen.offer_key
            ORDER BY seen.valid_from ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        later AS (
            PARTITION BY seen.source, seen.property_id, seen.offer_key
            ORDER BY seen.valid_from ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        )
)

SELECT
    placed.source,
    placed.property_id,
    placed.offer_key,
    any_value(placed.market) AS market,
    any_value(placed.product_type) AS product_type,
    any_value(placed.check_in) AS check_in,
    any_value(placed.nights) AS nights,
    any_value(placed.party) AS party,
    any_value(placed.currency) AS currency,
    any_value(placed.room_id) AS room_id,
    any_value(placed.board_id) AS board_id,
    any_value(placed.policy_key) AS policy_key,
    min(placed.valid_from) AS began_at,
    placed.plain_seen_at,
    max(placed.last_seen_at) AS promoted_seen_at,
    placed.ended_at,
    date_diff('day', min(placed.valid_from), max(placed.last_seen_at)) AS days,
    date_diff('day', placed.plain_seen_at, placed.ended_at) AS days_at_most,
    min(placed.depth_pct) AS least_depth_pct,
    max(placed.depth_pct) AS most_depth_pct,
    count(DISTINCT placed.promotion_key) AS promotion_keys,
    bool_or(placed.valid_to IS NULL) AS is_running
FROM placed
WHERE placed.is_below
GROUP BY placed.source, placed.property_id, placed.offer_key, placed.plain_seen_at, placed.ended_at
