-- One row per source and offer key on sale: until when cancelling is free of charge, and what it costs.
-- free_until_at: When the earliest penalty starts: its exact date, else its window before check-in; NULL: none stated.
-- deadline_rule: `date` (detail only), `window`, or `none`: not refundable, or no start stated.
-- hours_to_check_in: Hours from the last sighting to check-in, by the property's check-in time or the lake's default.
-- share_now: Cost of cancelling at the last sighting, as a share of total; NULL: cannot be computed.
-- is_free_now: Whether it could be cancelled free of charge at the last sighting; NULL: no penalty stated, or unknown.
-- An offer of which nothing is refunded is never free, also if its terms come to nothing; share_now is unknown then.
-- strictness: Strictness of its terms; see mart.policy_strictness.
-- What cancelling costs follows from what a detail answer states (mart.stated_penalty: amounts and dates win), and from
-- the terms of a list offer (mart.policy_step). Times of check-in: mart.property_check_in, then ref.analysis.
WITH timed AS (
    SELECT
        offer.*,
        mart.check_in_at(
            offer.check_in,
            arrival.check_in_time,
            arrival.time_zone,
            analysis.check_in_hour,
            analysis.check_in_time_zone
        ) AS check_in_at,
        date_diff('minute', mart.utc(offer.last_seen_at), mart.utc(check_in_at)) / 60.0 AS hours_to_check_in
    FROM mart.offer_latest AS offer
    LEFT JOIN mart.property_check_in AS arrival ON arrival.property_id = offer.property_id
    CROSS JOIN ref.analysis AS analysis
)

SELECT
    offer.source,
    offer.offer_key,
    offer.cell_key,
    offer.property_id,
    offer.market,
    offer.product_type,
    offer.check_in,
    offer.nights,
    offer.party,
    offer.currency,
    offer.room_stay_id,
    offer.room_id,
    offer.board_id,
    offer.policy_key,
    offer.total,
    offer.refundability,
    offer.free_cancel_hours,
    -- A window of more than a hundred years means "at any time", which is not a deadline.
    coalesce(
        offer.free_cancel_until,
        offer.check_in_at - to_hours(CASE WHEN offer.free_cancel_hours <= 1000000 THEN offer.free_cancel_hours END)
    ) AS free_until_at,
    CASE
        WHEN offer.free_cancel_until IS NOT NULL THEN 'date'
        WHEN offer.free_cancel_hours <= 1000000 THEN 'window'
        ELSE 'none'
    END AS deadline_rule,
    offer.hours_to_check_in,
    CASE
        WHEN stated.offer_key IS NULL THEN step.cost_share
        ELSE stated.amount::DOUBLE / nullif(offer.total, 0)::DOUBLE
    END AS share_now,
    offer.refundability <> 'non_refundable'
    AND CASE WHEN stated.offer_key IS NULL THEN step.cost_share = 0 ELSE stated.amount = 0 END AS is_free_now,
    policy.terms,
    strict.strictness,
    offer.lead_days,
    offer.last_seen_at,
    offer.seen_sweep_id,
    offer.seen_search_id,
    offer.seen_offer_no
FROM timed AS offer
LEFT JOIN mart.policy AS policy ON policy.policy_key = offer.policy_key
LEFT JOIN mart.policy_strictness AS strict
    ON
        strict.policy_key = offer.policy_key
        AND strict.nights = offer.nights
LEFT JOIN mart.policy_step AS step
    ON
        step.policy_key = offer.policy_key
        AND step.nights = offer.nights
        AND coalesce(step.from_hours, 1000000000) >= offer.hours_to_check_in
        AND step.until_hours < offer.hours_to_check_in
LEFT JOIN mart.stated_penalty AS stated
    ON
        stated.source = offer.source
        AND stated.property_id = offer.property_id
        AND stated.offer_key = offer.offer_key
