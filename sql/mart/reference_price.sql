-- One row per source and offer key on sale below its price before promotions: that price compared with its history.
-- first_seen_at: First sighting of the offer with a price: start of its history.
-- history_days: Days from first_seen_at to the last sighting.
-- began_at: First sighting of the running promotion; see mart.promotion_episode.
-- plain_seen_at: Last sighting without it before that; NULL: it ran at the offer's first sighting and may be older.
-- days_before: Days from first_seen_at to began_at.
-- lowest_before: Lowest total seen in the reference_days of ref.analysis before began_at, in currency; NULL: none seen.
-- lowest_from: When the total of lowest_moved was first seen: valid_from of its interval.
-- highest: Highest total ever seen, in currency.
-- highest_from: When that total was first seen: valid_from of its interval.
-- highest_moved: Highest total after raising each by the largest rise that the market's movement since explains.
-- snapshots: Number of sweeps that saw it on sale with a price.
-- promoted_snapshots: Number of sweeps that saw it below its price before promotions.
-- promoted_share_pct: 100 x promoted_snapshots / snapshots; 100: evergreen so far.
-- reference_verdict: `never_charged`, `above_lowest`, `honest` or `not_enough_history`. An indicator, not proof.
-- `not_enough_history`: too few days are known, or the offer was not observed for reference_days in a row.
-- `never_charged`: the price before promotions is above highest_moved, in a history of reference_days or more.
-- `above_lowest`: it is above lowest_moved, and the offer was watched for reference_days before the promotion began.
-- Both by more than tolerance_pct.
-- A promotion that begins less than reference_days after another is also above the lowest price: that is the rule.
-- Offers without room, board or currency cannot be distinguished and are left out; so are those whose latest detail
-- answer was partly unreadable, as another product may represent the key.
-- moved_pct: Change of the market's prices since highest_from, in percent; > 0: risen.
-- moved_since_lowest_pct: Change of the market's prices since the total of lowest_moved was last seen, in percent.
-- A total that was charged again after a rise of the market was taken back has not risen.
-- A total that is below the price before promotions only by rounding is not promoted (see mart.taken_off).
-- Totals are raised by the movement of their market: mart.raised_total.
-- longest_unseen_days: Days: longest time between two observations of the offer (see mart.promoted_interval).
-- lowest_moved: Lowest total before began_at, each raised by the largest rise of its market since it was last seen.
-- risen_since_lowest_pct: Percent of the market's prices that rose since lowest_moved was last seen, net of falls.
-- depth_pct: 100 x (1 - total / pre_promo_total); < 0: the total is higher; NULL: no price before promotions.
WITH promoted AS (
    SELECT offer.*
    FROM mart.offer_latest AS offer
    LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
    WHERE
        -- The first condition is known before the join; the second excludes what is only rounded.
        offer.total < offer.pre_promo_total
        AND mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) > 0
        AND offer.room_id IS NOT NULL
        AND offer.board_id IS NOT NULL
        AND offer.currency IS NOT NULL
        AND (offer.is_whole OR offer.source = 'multi')
),

held AS (
    SELECT
        promoted.* EXCLUDE (first_seen_at, snapshots),
        history.first_seen_at,
        history.plain_seen_at,
        history.began_at,
        history.lowest_before,
        history.lowest,
        history.highest,
        history.highest_from,
        history.moved,
        history.snapshots,
        history.promoted_snapshots,
        -- A price charged before the market rose counts at today's level, and may then be the highest.
        try_cast(greatest(history.highest::DOUBLE, history.highest_moved) AS DECIMAL(18, 4)) AS highest_moved,
        history.longest_unseen_days
    FROM promoted
    INNER JOIN mart.promoted_history AS history
        ON
            history.source = promoted.source
            AND history.property_id = promoted.property_id
            AND history.offer_key = promoted.offer_key
)

SELECT
    held.source,
    held.offer_key,
    held.property_id,
    held.market,
    held.product_type,
    held.check_in,
    held.nights,
    held.party,
    held.currency,
    held.room_id,
    held.board_id,
    held.policy_key,
    held.total,
    held.pre_promo_total,
    mart.depth_pct(held.total, held.pre_promo_total) AS depth_pct,
    held.promotion_key,
    held.first_seen_at,
    date_diff('day', mart.utc(held.first_seen_at), mart.utc(held.last_seen_at)) AS history_days,
    held.began_at,
    held.plain_seen_at,
    date_diff('day', mart.utc(held.first_seen_at), mart.utc(held.began_at)) AS days_before,
    held.lowest_before,
    held.lowest.valid_from AS lowest_from,
    held.highest,
    held.highest_from,
    held.snapshots,
    held.promoted_snapshots,
    100.0 * held.promoted_snapshots / held.snapshots AS promoted_share_pct,
    round(100 * (exp(held.moved) - 1), 6) AS moved_pct,
    round(100 * (exp(held.lowest.change) - 1), 6) AS moved_since_lowest_pct,
    CASE
        WHEN held.longest_unseen_days >= analysis.reference_days THEN 'not_enough_history'
        WHEN
            history_days >= analysis.reference_days
            AND held.pre_promo_total::DOUBLE > held.highest_moved::DOUBLE * (1 + analysis.tolerance_pct / 100)
            THEN 'never_charged'
        WHEN days_before < analysis.reference_days OR held.lowest_before IS NULL THEN 'not_enough_history'
        WHEN held.pre_promo_total::DOUBLE > held.lowest.moved * (1 + analysis.tolerance_pct / 100)
            THEN 'above_lowest'
        ELSE 'honest'
    END AS reference_verdict,
    held.last_seen_at,
    held.seen_sweep_id,
    held.seen_search_id,
    held.seen_offer_no,
    held.highest_moved,
    held.longest_unseen_days,
    try_cast(held.lowest.moved AS DECIMAL(18, 4)) AS lowest_moved,
    CASE
        WHEN held.lowest_before IS NOT NULL THEN round(100 * coalesce(held.lowest.risen, 0), 6)
    END AS risen_since_lowest_pct
FROM held
CROSS JOIN ref.analysis AS analysis
