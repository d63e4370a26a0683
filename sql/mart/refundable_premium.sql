-- One row per source, stay, room and board seen refundable and non-refundable in one sweep: the price difference.
-- refundable_total: Cheapest refundable total, in currency.
-- non_refundable_total: Cheapest non-refundable total, in currency.
-- premium: refundable_total - non_refundable_total, in currency; > 0: the right to cancel costs extra.
-- premium_pct: 100 x (refundable_total / non_refundable_total - 1); > 0: the right to cancel costs extra.
-- refundable_penalty: Cost of cancelling the refundable offer at the last sighting, in currency.
-- non_refundable_penalty: Cost of cancelling the non-refundable offer at the last sighting, in currency.
-- break_even_pct: Probability of cancelling, in percent, above which refundable is cheaper; 0: it is never dearer.
-- refundable_policy_key: Hash of the cancellation penalties of the refundable offer.
-- non_refundable_policy_key: Hash of the cancellation penalties of the non-refundable offer.
-- refundable_key: Offer key of the refundable offer.
-- non_refundable_key: Offer key of the non-refundable offer.
-- break_even_pct is premium / (premium + saving), where saving = non_refundable_penalty - refundable_penalty. It holds
-- while cancelling costs what it did at the last sighting; NULL if there is no saving or a penalty is unknown. The
-- cost of cancelling comes from a detail answer (mart.stated_penalty: a stated amount wins) or from the terms of a
-- list offer (mart.policy_step).
-- Offers without room, board or currency are left out: they may be of two rooms. So are those in partly unreadable
-- answers: the cheaper one may be missing.
WITH offer AS NOT MATERIALIZED (
    SELECT
        latest.*,
        -- All that both offers share besides the property, in one number, valid within the query: grouping by eight
        -- columns takes twice as long.
        hash(
            latest.source,
            latest.cell_key,
            latest.room_stay_id,
            latest.room_id,
            latest.board_id,
            latest.currency,
            latest.seen_sweep_id
        ) AS terms
    FROM mart.offer_latest AS latest
    WHERE
        latest.total > 0
        AND latest.room_id IS NOT NULL
        AND latest.board_id IS NOT NULL
        AND latest.currency IS NOT NULL
        AND latest.is_whole
),

non_refundable AS (
    SELECT
        offer.property_id,
        offer.terms,
        min({ 'total': offer.total, 'offer_key': offer.offer_key, 'policy_key': offer.policy_key }) AS cheapest
    FROM offer
    WHERE offer.refundability = 'non_refundable'
    GROUP BY offer.property_id, offer.terms
),

-- What both offers share is that of either one: joining the offers again would take longer.
paired AS (
    SELECT
        any_value(offer.source) AS source,
        offer.property_id,
        any_value(offer.cell_key) AS cell_key,
        any_value(offer.room_stay_id) AS room_stay_id,
        any_value(offer.room_id) AS room_id,
        any_value(offer.board_id) AS board_id,
        any_value(offer.currency) AS currency,
        any_value(offer.seen_sweep_id) AS seen_sweep_id,
        any_value(offer.market) AS market,
        any_value(offer.product_type) AS product_type,
        any_value(offer.check_in) AS check_in,
        any_value(offer.nights) AS nights,
        any_value(offer.party) AS party,
        any_value(offer.lead_days) AS lead_days,
        any_value(offer.last_seen_at) AS last_seen_at,
        min({ 'total': offer.total, 'offer_key': offer.offer_key, 'policy_key': offer.policy_key }) AS refundable,
        any_value(other.cheapest) AS non_refundable,
        refundable['total'] AS refundable_total,
        non_refundable['total'] AS non_refundable_total,
        refundable['offer_key'] AS refundable_key,
        non_refundable['offer_key'] AS non_refundable_key,
        refundable['policy_key'] AS refundable_policy_key,
        non_refundable['policy_key'] AS non_refundable_policy_key
    FROM offer
    INNER JOIN non_refundable AS other ON other.property_id = offer.property_id AND other.terms = offer.terms
    WHERE offer.refundability = 'refundable'
    GROUP BY offer.property_id, offer.terms
),

timed AS (
    SELECT
        paired.*,
        date_diff(
            'minute',
            mart.utc(paired.last_seen_at),
            mart.utc(
                mart.check_in_at(
                    paired.check_in,
                    arrival.check_in_time,
                    arrival.time_zone,
                    analysis.check_in_hour,
                    analysis.check_in_time_zone
                )
            )
        ) / 60.0 AS hours
    FROM paired
    LEFT JOIN mart.property_check_in AS arrival ON arrival.property_id = paired.property_id
    CROSS JOIN ref.analysis AS analysis
),

costed AS (
    SELECT
        timed.* EXCLUDE (hours),
        timed.refundable_total - timed.non_refundable_total AS premium,
        CASE
            WHEN refundable_stated.offer_key IS NOT NULL THEN refundable_stated.amount
            ELSE (timed.refundable_total * refundable.cost_share)::DECIMAL(18, 4)
        END AS refundable_penalty,
        CASE
            WHEN other_stated.offer_key IS NOT NULL THEN other_stated.amount
            ELSE (timed.non_refundable_total * other.cost_share)::DECIMAL(18, 4)
        END AS non_refundable_penalty
    FROM timed
    LEFT JOIN mart.policy_step AS refundable
        ON
            refundable.policy_key = timed.refundable_policy_key
            AND refundable.nights = timed.nights
            AND coalesce(refundable.from_hours, 1000000000) >= timed.hours
            AND refundable.until_hours < timed.hours
    LEFT JOIN mart.policy_step AS other
        ON
            other.policy_key = timed.non_refundable_policy_key
            AND other.nights = timed.nights
            AND coalesce(other.from_hours, 1000000000) >= timed.hours
            AND other.until_hours < timed.hours
    LEFT JOIN mart.stated_penalty AS refundable_stated
        ON
            refundable_stated.source = timed.source
            AND refundable_stated.property_id = timed.property_id
            AND refundable_stated.offer_key = timed.refundable_key
    LEFT JOIN mart.stated_penalty AS other_stated
        ON
            other_stated.source = timed.source
            AND other_stated.property_id = timed.property_id
            AND other_stated.offer_key = timed.non_refundable_key
)

SELECT
    costed.source,
    costed.property_id,
    costed.market,
    costed.product_type,
    costed.check_in,
    costed.nights,
    costed.party,
    costed.currency,
    costed.room_stay_id,
    costed.room_id,
    costed.board_id,
    costed.lead_days,
    costed.refundable_total,
    costed.non_refundable_total,
    costed.premium::DECIMAL(18, 4) AS premium,
    100 * (costed.refundable_total::DOUBLE / costed.non_refundable_total::DOUBLE - 1) AS premium_pct,
    costed.refundable_penalty,
    costed.non_refundable_penalty,
    CASE
        WHEN costed.non_refundable_penalty <= costed.refundable_penalty THEN NULL
        WHEN costed.premium <= 0 THEN 0
        ELSE
            100 * costed.premium::DOUBLE
            / (costed.premium + costed.non_refundable_penalty - costed.refundable_penalty)::DOUBLE
    END AS break_even_pct,
    costed.refundable_policy_key,
    costed.non_refundable_policy_key,
    costed.refundable_key,
    costed.non_refundable_key,
    costed.cell_key,
    costed.seen_sweep_id,
    costed.last_seen_at
FROM costed
