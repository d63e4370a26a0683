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
-- The state keeps those that have ended, and what runs of offers that have changed: no history is read.
WITH episode AS NOT MATERIALIZED (
    SELECT
        closed.*,
        FALSE AS is_running
    FROM state.promotion_closed AS closed

    UNION ALL BY NAME

    SELECT
        offer.source,
        offer.offer_key,
        offer.property_id,
        offer.market,
        offer.product_type,
        offer.check_in,
        offer.nights,
        offer.party,
        offer.currency,
        offer.room_id,
        offer.board_id,
        offer.policy_key,
        coalesce(promotion.promoted_from, offer.valid_from) AS began_at,
        promotion.plain_seen_at,
        coalesce(promotion.promoted_seen_at, offer.last_seen_at) AS promoted_seen_at,
        NULL::TIMESTAMPTZ AS ended_at,
        coalesce(promotion.least_depth_pct, mart.depth_pct(offer.total, offer.pre_promo_total)) AS least_depth_pct,
        coalesce(promotion.most_depth_pct, mart.depth_pct(offer.total, offer.pre_promo_total)) AS most_depth_pct,
        CASE
            WHEN promotion.promoted_seen_at IS NULL THEN offer.promotion_key
            ELSE promotion.promotion_key
        END AS promotion_key,
        promotion.promoted_seen_at IS NULL
        AND mart.is_on_sale(
            offer.doubted_since,
            (SELECT max(sweep.started_at) FROM mart.sweep AS sweep),
            (SELECT analysis.unobserved_nights FROM ref.analysis AS analysis)
        ) AS is_running
    FROM state.offer_open AS offer
    LEFT JOIN state.promotion_open AS promotion
        ON
            promotion.source = offer.source
            AND promotion.property_id = offer.property_id
            AND promotion.offer_key = offer.offer_key
    -- Only where it matters: most offers have no promotion.
    LEFT JOIN ref.currency AS unit
        ON unit.currency = CASE WHEN offer.total < offer.pre_promo_total THEN offer.currency END
    WHERE
        promotion.promoted_from IS NOT NULL
        -- An offer that has not changed since it was first seen.
        OR (
            offer.is_offered
            AND offer.valid_from <= offer.first_seen_at
            AND mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) > 0
        )
)

SELECT
    episode.source,
    episode.property_id,
    episode.offer_key,
    episode.market,
    episode.product_type,
    episode.check_in,
    episode.nights,
    episode.party,
    episode.currency,
    episode.room_id,
    episode.board_id,
    episode.policy_key,
    episode.began_at,
    episode.plain_seen_at,
    episode.promoted_seen_at,
    episode.ended_at,
    date_diff('day', mart.utc(episode.began_at), mart.utc(episode.promoted_seen_at)) AS days,
    date_diff('day', mart.utc(episode.plain_seen_at), mart.utc(episode.ended_at)) AS days_at_most,
    episode.least_depth_pct,
    episode.most_depth_pct,
    episode.promotion_key,
    episode.is_running
FROM episode
