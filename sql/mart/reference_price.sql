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
-- How the market's prices have moved: mart.market_movement.
-- An offer may follow its market within a week: up to what it was charged at without a promotion.
-- longest_unseen_days: Days: longest time unseen until its price differed, or without any answer in its market.
-- Times without an answer in the market count from reference_days. Within an interval, it is at least the mean time
-- between two sightings: the state has how often an offer was seen at one price, not when. So if only its property was
-- not requested for as long, and its price is the same afterwards, there still is a verdict.
-- lowest_moved: Lowest total before began_at, each raised by the largest rise of its market since it was last seen.
-- risen_since_lowest_pct: Percent of the market's prices that rose since lowest_moved was last seen, net of falls.
-- depth_pct: 100 x (1 - total / pre_promo_total); < 0: the total is higher; NULL: no price before promotions.
WITH moved AS MATERIALIZED (
    FROM mart.market_movement
),

-- Read twice; kept, DuckDB 2.0.0 would wait forever for the first rows of this relation.
promoted AS NOT MATERIALIZED (
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

-- Histories of more than one interval. An offer that has stayed the same needs no look at its history, and most have.
interval_seen AS (
    SELECT
        history.source,
        history.property_id,
        history.offer_key,
        history.valid_from,
        history.last_seen_at,
        history.market,
        history.product_type,
        history.total,
        history.snapshots,
        latest.last_seen_at AS now_at,
        coalesce(mart.taken_off(history.total, history.pre_promo_total, unit.minor_unit) > 0, FALSE) AS is_below,
        lag(CASE WHEN history.is_offered AND NOT is_below THEN history.total END) OVER ( -- noqa: RF02
            PARTITION BY history.source, history.property_id, history.offer_key
            ORDER BY history.valid_from
        ) AS plain_before,
        history.is_offered AND history.total IS NOT NULL AS is_priced,
        date_diff(
            'day',
            mart.utc(
                lag(history.last_seen_at) OVER (
                    PARTITION BY history.source, history.property_id, history.offer_key
                    ORDER BY history.valid_from
                )
            ),
            mart.utc(history.valid_from)
        ) AS days_unseen,
        -- While it was gone, it cost nothing.
        CASE
            WHEN history.is_offered
                THEN
                    date_diff('day', mart.utc(history.valid_from), mart.utc(history.last_seen_at))
                    // nullif(history.snapshots - 1, 0)
        END AS days_between
    FROM mart.offer_history AS history
    -- An inner join, unlike a semi join, passes a filter on the property to both sides; and it reads keys only.
    INNER JOIN state.offer_open AS latest
        ON
            latest.source = history.source
            AND latest.property_id = history.property_id
            AND latest.offer_key = history.offer_key
            AND latest.is_offered
            AND latest.total < latest.pre_promo_total
            AND latest.valid_from > latest.first_seen_at
    LEFT JOIN ref.currency AS unit ON unit.currency = latest.currency
    WHERE mart.taken_off(latest.total, latest.pre_promo_total, unit.minor_unit) > 0
),

-- What an offer cost while it was not observed is unknown; while it was gone, it cost nothing.
unseen AS (
    SELECT
        each.source,
        each.property_id,
        each.offer_key,
        greatest(max(each.days_unseen), max(each.days_between)) AS longest_unseen_days
    FROM interval_seen AS each
    GROUP BY each.source, each.property_id, each.offer_key
),

-- An interval continues across a time without sweeps if the price is the same afterwards.
answered AS (
    SELECT
        count_of.operation,
        count_of.market,
        count_of.product_type,
        sweep.started_at
    FROM state.cell_count AS count_of
    INNER JOIN mart.sweep AS sweep ON sweep.sweep_id = count_of.sweep_id
    GROUP BY count_of.operation, count_of.market, count_of.product_type, sweep.started_at
    HAVING sum(count_of.planned) > sum(count_of.rejected + count_of.failed + count_of.not_swept)
),

pause AS (
    SELECT
        CASE answered.operation WHEN 'single' THEN 'detail' ELSE answered.operation END AS source,
        answered.market,
        answered.product_type,
        lag(answered.started_at) OVER (
            PARTITION BY answered.operation, answered.market, answered.product_type ORDER BY answered.started_at
        ) AS began_at,
        answered.started_at AS ended_at,
        date_diff('day', mart.utc(began_at), mart.utc(ended_at)) AS days
    FROM answered
    CROSS JOIN ref.analysis AS analysis
    QUALIFY days >= analysis.reference_days
),

paused AS (
    SELECT
        promoted.source,
        promoted.property_id,
        promoted.offer_key,
        max(pause.days) AS days
    FROM promoted
    INNER JOIN pause
        ON
            pause.source = promoted.source
            AND pause.market = promoted.market
            AND pause.product_type = promoted.product_type
            AND pause.began_at >= promoted.first_seen_at
            AND pause.ended_at <= promoted.last_seen_at
    GROUP BY promoted.source, promoted.property_id, promoted.offer_key
),

seen AS (
    SELECT each.*
    FROM interval_seen AS each
    WHERE each.is_priced
),

plain AS (
    SELECT
        seen.source,
        seen.property_id,
        seen.offer_key,
        max(seen.valid_from) FILTER (WHERE NOT seen.is_below) AS plain_from,
        max(seen.last_seen_at) FILTER (WHERE NOT seen.is_below) AS plain_seen_at
    FROM seen
    GROUP BY seen.source, seen.property_id, seen.offer_key
),

begun AS (
    SELECT
        seen.source,
        seen.property_id,
        seen.offer_key,
        any_value(plain.plain_seen_at) AS plain_seen_at,
        max(seen.total) FILTER (
            WHERE NOT seen.is_below
            AND mart.utc(seen.last_seen_at) >= mart.utc(plain.plain_seen_at) - to_days(analysis.reference_days)
        ) AS dearest_plain,
        min(seen.valid_from) FILTER (WHERE coalesce(seen.valid_from > plain.plain_from, TRUE)) AS began_at
    FROM seen
    INNER JOIN plain
        ON
            plain.source = seen.source
            AND plain.property_id = seen.property_id
            AND plain.offer_key = seen.offer_key
    CROSS JOIN ref.analysis AS analysis
    GROUP BY seen.source, seen.property_id, seen.offer_key
),

-- Each interval with the rises that the market's movement since explains, as logarithms.
valued AS (
    SELECT
        seen.*,
        begun.plain_seen_at,
        begun.began_at,
        begun.dearest_plain,
        coalesce((now.risen - at_seen.risen)::DOUBLE, 0) AS by_median,
        coalesce(
            mart.explained_rise(now.spread.rise - at_seen.spread.rise, now.spread.share - at_seen.spread.share), 0
        ) AS by_mean,
        coalesce(
            mart.explained_rise(
                now.spread.rise - at_seen.spread_before.rise, now.spread.share - at_seen.spread_before.share
            ),
            0
        ) AS by_mean_before,
        -- Since it was last seen, up to the highest level of the market.
        coalesce((at_last.highest_since - at_last.risen)::DOUBLE, 0) AS last_by_median,
        coalesce(
            mart.explained_rise(
                at_last.spread_at_highest.rise - at_last.spread.rise,
                at_last.spread_at_highest.share - at_last.spread.share
            ),
            0
        ) AS last_by_mean,
        coalesce(
            CASE
                WHEN at_seen.started_at > at_last.spread_before.at
                    THEN
                        mart.explained_rise(
                            at_last.spread_at_highest.rise - at_seen.spread.rise,
                            at_last.spread_at_highest.share - at_seen.spread.share
                        )
                ELSE
                    mart.explained_rise(
                        at_last.spread_at_highest.rise - at_last.spread_before.rise,
                        at_last.spread_at_highest.share - at_last.spread_before.share
                    )
            END,
            0
        ) AS last_by_mean_before
    FROM seen
    INNER JOIN begun
        ON
            begun.source = seen.source
            AND begun.property_id = seen.property_id
            AND begun.offer_key = seen.offer_key
    LEFT JOIN moved AS at_seen
        ON
            at_seen.source = seen.source
            AND at_seen.market = seen.market
            AND at_seen.product_type = seen.product_type
            AND at_seen.started_at = seen.valid_from
    LEFT JOIN moved AS at_last
        ON
            at_last.source = seen.source
            AND at_last.market = seen.market
            AND at_last.product_type = seen.product_type
            AND at_last.started_at = seen.last_seen_at
    LEFT JOIN moved AS now
        ON
            now.source = seen.source
            AND now.market = seen.market
            AND now.product_type = seen.product_type
            AND now.started_at = seen.now_at
),

priced AS (
    SELECT
        valued.source,
        valued.property_id,
        valued.offer_key,
        any_value(valued.plain_seen_at) AS plain_seen_at,
        any_value(valued.began_at) AS began_at,
        min(valued.valid_from) AS first_seen_at,
        max(valued.total) AS highest,
        max(
            greatest(
                valued.total::DOUBLE * exp(valued.by_median),
                least(
                    valued.total::DOUBLE * exp(valued.by_mean),
                    -- One of the first to rise has had its share of what the market rises in the week after.
                    valued.plain_before::DOUBLE * exp(valued.by_mean_before)
                )
            )
        ) AS highest_moved,
        arg_min(valued.valid_from, { 'total': -valued.total, 'at': valued.valid_from }) AS highest_from,
        min(valued.total) FILTER (
            WHERE valued.valid_from < valued.began_at
            AND mart.utc(valued.last_seen_at) >= mart.utc(valued.began_at) - to_days(analysis.reference_days)
        ) AS lowest_before,
        -- Each total by what it may have become since it was last seen; of those that are alike, the first.
        min({
            'moved': round(
                greatest(
                    valued.total::DOUBLE * exp(greatest(valued.last_by_median, valued.last_by_mean)),
                    -- One of the last to rise followed what the market rose in the week before.
                    least(valued.dearest_plain::DOUBLE, valued.total::DOUBLE * exp(valued.last_by_mean_before))
                ),
                4
            ),
            'valid_from': valued.valid_from,
            'last_seen_at': valued.last_seen_at
        }) FILTER (
            WHERE valued.valid_from < valued.began_at
            AND mart.utc(valued.last_seen_at) >= mart.utc(valued.began_at) - to_days(analysis.reference_days)
        ) AS lowest,
        sum(valued.snapshots)::INTEGER AS snapshots,
        coalesce(sum(valued.snapshots) FILTER (WHERE valued.is_below), 0)::INTEGER AS promoted_snapshots
    FROM valued
    CROSS JOIN ref.analysis AS analysis
    GROUP BY valued.source, valued.property_id, valued.offer_key
),

held AS (
    SELECT
        promoted.*,
        priced.plain_seen_at,
        priced.lowest_before,
        priced.lowest,
        priced.highest_moved,
        priced.offer_key IS NULL AS is_only,
        -- Without other intervals, all of these are of the present one.
        coalesce(priced.began_at, promoted.valid_from) AS began_at,
        coalesce(priced.first_seen_at, promoted.valid_from) AS seen_from,
        coalesce(priced.highest, promoted.total) AS highest,
        coalesce(priced.highest_from, promoted.valid_from) AS highest_from,
        coalesce(priced.snapshots, promoted.snapshots) AS seen_snapshots,
        coalesce(priced.promoted_snapshots, promoted.snapshots) AS promoted_snapshots,
        greatest(
            unseen.longest_unseen_days,
            paused.days,
            date_diff('day', mart.utc(promoted.valid_from), mart.utc(promoted.last_seen_at))
            // nullif(promoted.snapshots - 1, 0),
            0
        ) AS longest_unseen_days
    FROM promoted
    LEFT JOIN unseen
        ON
            unseen.source = promoted.source
            AND unseen.property_id = promoted.property_id
            AND unseen.offer_key = promoted.offer_key
    LEFT JOIN paused
        ON
            paused.source = promoted.source
            AND paused.property_id = promoted.property_id
            AND paused.offer_key = promoted.offer_key
    LEFT JOIN priced
        ON
            priced.source = promoted.source
            AND priced.property_id = promoted.property_id
            AND priced.offer_key = promoted.offer_key
),

raised AS (
    SELECT
        held.* EXCLUDE (highest_moved),
        CASE
            WHEN
                mart.explained_rise(
                    now.spread.rise - at_highest.spread.rise, now.spread.share - at_highest.spread.share
                ) > (now.risen - at_highest.risen)::DOUBLE + 1e-6
                THEN
                    mart.explained_rise(
                        now.spread.mean - at_highest.spread.mean, now.spread.share - at_highest.spread.share
                    )
            ELSE coalesce((now.so_far - at_highest.so_far)::DOUBLE, 0)
        END AS moved,
        CASE
            WHEN
                mart.explained_rise(
                    now.spread.rise - at_lowest.spread.rise, now.spread.share - at_lowest.spread.share
                ) > (now.risen - at_lowest.risen)::DOUBLE + 1e-6
                THEN
                    mart.explained_rise(
                        now.spread.mean - at_lowest.spread.mean,
                        now.spread.share - at_lowest.spread.share
                    )
            ELSE coalesce((now.so_far - at_lowest.so_far)::DOUBLE, 0)
        END AS moved_since_lowest,
        least(now.spread.share - at_lowest.spread.share, 1) AS risen_since_lowest,
        -- A price charged before the market rose counts at today's level, and may then be the highest.
        try_cast(round(
            greatest(
                held.highest::DOUBLE,
                CASE
                    WHEN held.is_only
                        THEN
                            held.total::DOUBLE * exp(greatest(
                                coalesce((now.risen - at_highest.risen)::DOUBLE, 0),
                                mart.explained_rise(
                                    now.spread.rise - at_highest.spread.rise, now.spread.share - at_highest.spread.share
                                )
                            ))
                    ELSE held.highest_moved
                END
            ),
            4
        ) AS DECIMAL(18, 4)) AS highest_moved
    FROM held
    LEFT JOIN moved AS now
        ON
            now.source = held.source
            AND now.market = held.market
            AND now.product_type = held.product_type
            AND now.started_at = held.last_seen_at
    LEFT JOIN moved AS at_highest
        ON
            at_highest.source = held.source
            AND at_highest.market = held.market
            AND at_highest.product_type = held.product_type
            AND at_highest.started_at = held.highest_from
    LEFT JOIN moved AS at_lowest
        ON
            at_lowest.source = held.source
            AND at_lowest.market = held.market
            AND at_lowest.product_type = held.product_type
            AND at_lowest.started_at = held.lowest.last_seen_at
)

SELECT
    raised.source,
    raised.offer_key,
    raised.property_id,
    raised.market,
    raised.product_type,
    raised.check_in,
    raised.nights,
    raised.party,
    raised.currency,
    raised.room_id,
    raised.board_id,
    raised.policy_key,
    raised.total,
    raised.pre_promo_total,
    100 * (1 - raised.total::DOUBLE / raised.pre_promo_total::DOUBLE) AS depth_pct,
    raised.promotion_key,
    raised.seen_from AS first_seen_at,
    date_diff('day', mart.utc(raised.seen_from), mart.utc(raised.last_seen_at)) AS history_days,
    raised.began_at,
    raised.plain_seen_at,
    date_diff('day', mart.utc(raised.seen_from), mart.utc(raised.began_at)) AS days_before,
    raised.lowest_before,
    raised.lowest.valid_from AS lowest_from,
    raised.highest,
    raised.highest_from,
    raised.seen_snapshots AS snapshots,
    raised.promoted_snapshots,
    100.0 * raised.promoted_snapshots / raised.seen_snapshots AS promoted_share_pct,
    round(100 * (exp(raised.moved) - 1), 6) AS moved_pct,
    CASE
        WHEN raised.lowest_before IS NOT NULL
            THEN round(100 * (exp(raised.moved_since_lowest) - 1), 6)
    END AS moved_since_lowest_pct,
    CASE
        WHEN raised.longest_unseen_days >= analysis.reference_days THEN 'not_enough_history'
        WHEN
            history_days >= analysis.reference_days
            AND raised.pre_promo_total::DOUBLE > raised.highest_moved::DOUBLE * (1 + analysis.tolerance_pct / 100)
            THEN 'never_charged'
        WHEN days_before < analysis.reference_days OR raised.lowest_before IS NULL THEN 'not_enough_history'
        WHEN raised.pre_promo_total::DOUBLE > raised.lowest.moved * (1 + analysis.tolerance_pct / 100)
            THEN 'above_lowest'
        ELSE 'honest'
    END AS reference_verdict,
    raised.last_seen_at,
    raised.seen_sweep_id,
    raised.seen_search_id,
    raised.seen_offer_no,
    raised.highest_moved,
    raised.longest_unseen_days,
    try_cast(raised.lowest.moved AS DECIMAL(18, 4)) AS lowest_moved,
    CASE
        WHEN raised.lowest_before IS NOT NULL THEN round(100 * coalesce(raised.risen_since_lowest, 0), 6)
    END AS risen_since_lowest_pct
FROM raised
CROSS JOIN ref.analysis AS analysis
