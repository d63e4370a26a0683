-- One row per source, offer key and promotion: consecutive sightings below the price before promotions.
-- A total that is below it only by rounding is not promoted (see mart.taken_off).
-- If an offer disappears and returns with its promotion, that is one episode: the time in between is unknown.
-- began_at: First sighting of the offer with the promotion.
-- plain_seen_at: Last sighting without it before that; NULL: it ran at the offer's first sighting and may be older.
-- promoted_seen_at: Last sighting with the promotion.
-- ended_at: First sighting without it afterwards; NULL: it is running, the offer is gone, or its stay began.
-- days: Minimum length in days: from first to last sighting with the promotion.
-- days_at_most: Maximum length in days: between the sightings without it before and after; NULL: unknown.
-- least_depth_pct: Smallest depth, 100 x (1 - total / pre_promo_total).
-- most_depth_pct: Largest depth, 100 x (1 - total / pre_promo_total).
-- promotion_key: Hash of the promotions named last (see mart.promotion_named); 0: none named.
-- is_running: Whether the offer is on sale (see mart.offer_latest) with this promotion.
-- Most offers have one interval and need no window; of the others, most are never promoted, and sorting all of them
-- would take most of the time.
-- NOT MATERIALIZED: each branch reads only its rows, and a query that stops early cannot block the other branch.
WITH seen AS NOT MATERIALIZED (
    SELECT
        history.*,
        coalesce(mart.taken_off(history.total, history.pre_promo_total, unit.minor_unit) > 0, FALSE) AS is_below,
        -- It began with the first sighting of the offer and was not followed by another one.
        history.valid_from = history.first_seen_at
        AND coalesce(history.ended_by = 'stay_began', TRUE) AS is_only,
        history.valid_to IS NULL
        AND mart.is_on_sale(
            history.doubted_since,
            (SELECT max(sweep.started_at) FROM mart.sweep AS sweep),
            (SELECT analysis.unobserved_nights FROM ref.analysis AS analysis)
        ) AS is_running
    FROM mart.offer_history AS history
    LEFT JOIN ref.currency AS unit ON unit.currency = history.currency
    WHERE history.is_offered AND history.total IS NOT NULL
),

ever AS (
    SELECT DISTINCT
        seen.source,
        seen.property_id,
        seen.offer_key
    FROM seen
    -- The first condition is known before the join with the unit, and skips most rows.
    WHERE seen.total < seen.pre_promo_total AND seen.is_below AND NOT seen.is_only
),

placed AS (
    SELECT
        seen.source,
        seen.property_id,
        seen.offer_key,
        seen.valid_from,
        seen.last_seen_at,
        seen.is_running,
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
        -- Sightings below the price before promotions with as many others before them are one promotion.
        count(*) FILTER (WHERE NOT seen.is_below) OVER (
            PARTITION BY seen.source, seen.property_id, seen.offer_key
            ORDER BY seen.valid_from ROWS UNBOUNDED PRECEDING
        ) AS others_before,
        lag(CASE WHEN NOT seen.is_below THEN seen.last_seen_at END) OVER in_time AS plain_seen_at,
        lead(CASE WHEN NOT seen.is_below THEN seen.valid_from END) OVER in_time AS ended_at
    FROM seen
    -- An inner join, unlike a semi join, passes a filter on the property to both sides.
    INNER JOIN ever
        ON
            ever.source = seen.source
            AND ever.property_id = seen.property_id
            AND ever.offer_key = seen.offer_key
    WHERE NOT seen.is_only
    WINDOW in_time AS (PARTITION BY seen.source, seen.property_id, seen.offer_key ORDER BY seen.valid_from)
)

SELECT
    seen.source,
    seen.property_id,
    seen.offer_key,
    seen.market,
    seen.product_type,
    seen.check_in,
    seen.nights,
    seen.party,
    seen.currency,
    seen.room_id,
    seen.board_id,
    seen.policy_key,
    seen.valid_from AS began_at,
    NULL::TIMESTAMPTZ AS plain_seen_at,
    seen.last_seen_at AS promoted_seen_at,
    NULL::TIMESTAMPTZ AS ended_at,
    date_diff('day', mart.utc(seen.valid_from), mart.utc(seen.last_seen_at)) AS days,
    NULL::BIGINT AS days_at_most,
    100 * (1 - seen.total::DOUBLE / seen.pre_promo_total::DOUBLE) AS least_depth_pct,
    least_depth_pct AS most_depth_pct, -- noqa: RF02
    seen.promotion_key,
    seen.is_running
FROM seen
WHERE seen.total < seen.pre_promo_total AND seen.is_below AND seen.is_only

UNION ALL

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
    max(placed.plain_seen_at) AS plain_seen_at,
    max(placed.last_seen_at) AS promoted_seen_at,
    max(placed.ended_at) AS ended_at,
    date_diff('day', mart.utc(min(placed.valid_from)), mart.utc(max(placed.last_seen_at))) AS days,
    date_diff('day', mart.utc(max(placed.plain_seen_at)), mart.utc(max(placed.ended_at))) AS days_at_most,
    min(placed.depth_pct) AS least_depth_pct,
    max(placed.depth_pct) AS most_depth_pct,
    arg_max(placed.promotion_key, placed.valid_from) AS promotion_key,
    bool_or(placed.is_running) AS is_running
FROM placed
WHERE placed.is_below
GROUP BY placed.source, placed.property_id, placed.offer_key, placed.others_before
