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
WITH side AS (
    SELECT
        offer.source,
        offer.property_id,
        offer.cell_key,
        offer.room_stay_id,
        offer.room_id,
        offer.board_id,
        offer.currency,
        offer.seen_sweep_id,
        any_value(offer.market) AS market,
        any_value(offer.product_type) AS product_type,
        any_value(offer.check_in) AS check_in,
        any_value(offer.nights) AS nights,
        any_value(offer.party) AS party,
        any_value(offer.lead_days) AS lead_days,
        any_value(offer.last_seen_at) AS last_seen_at,
        min(offer.total) FILTER (WHERE offer.refundability = 'refundable') AS refundable_total,
        min(offer.total) FILTER (WHERE offer.refundability = 'non_refundable') AS non_refundable_total,
        -- Among equal totals, take the smallest key, so that the result is always the same.
        arg_min(offer.offer_key, (offer.total, offer.offer_key)) FILTER (WHERE offer.refundability = 'refundable')
            AS refundable_key,
        arg_min(offer.offer_key, (offer.total, offer.offer_key)) FILTER (WHERE offer.refundability = 'non_refundable')
            AS non_refundable_key,
        arg_min(offer.policy_key, (offer.total, offer.offer_key)) FILTER (WHERE offer.refundability = 'refundable')
            AS refundable_policy_key,
        arg_min(offer.policy_key, (offer.total, offer.offer_key)) FILTER (WHERE offer.refundability = 'non_refundable')
            AS non_refundable_policy_key
    FROM mart.offer_latest AS offer
    WHERE
        offer.refundability IN ('refundable', 'non_refundable')
        AND offer.total > 0
        AND offer.room_id IS NOT NULL
        AND offer.board_id IS NOT NULL
        AND offer.currency IS NOT NULL
        AND offer.is_whole
    GROUP BY
        offer.source,
        offer.property_id,
        offer.cell_key,
        offer.room_stay_id,
        offer.room_id,
        offer.board_id,
        offer.currency,
        offer.seen_sweep_id
    HAVING refundable_total IS NOT NULL AND non_refundable_total IS NOT NULL
),

timed AS (
    SELECT
        side.*,
        date_diff(
            'minute',
            side.last_seen_at,
            mart.check_in_at(
                side.check_in,
                arrival.check_in_time,
                arrival.time_zone,
                analysis.check_in_hour,
                analysis.check_in_time_zone
            )
        ) / 60.0 AS hours
    FROM side
    LEFT JOIN mart.property_check_in AS arrival ON arrival.property_id = side.property_id
    CROSS JOIN ref.analysis AS analysis
),

costed AS (
    SELECT
        timed.* EXCLUDE (hours), -- noqa: RF02
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
