-- One row per detail offer on sale that states cancellation penalties: the cost of cancelling it at the last sighting.
-- amount: Cost of cancelling as stated, else computed, in currency; 0: free of charge; NULL: cannot be computed.
-- If nothing is refunded, cancelling is never free: where the terms come to nothing, what it costs is unknown.
-- As mart.penalty_at() gives for that moment: a stated amount wins over percentage and nights, and exact dates win over
-- the window; of several penalties, the largest counts. mart.policy_step has no amounts, because lists state none.
WITH stated AS (
    SELECT
        offer.source,
        offer.property_id,
        offer.offer_key,
        offer.last_seen_at,
        penalty.is_refundable,
        mart.penalty_span(
            penalty.start_at,
            penalty.end_at,
            penalty.window_hours,
            mart.check_in_at(
                offer.check_in,
                arrival.check_in_time,
                arrival.time_zone,
                analysis.check_in_hour,
                analysis.check_in_time_zone
            )
        ) AS span,
        mart.penalty_cost(
            offer.total,
            offer.nights,
            penalty.amount,
            penalty.penalty_pct,
            penalty.penalty_nights,
            penalty.is_refundable
        )['amount'] AS cost
    FROM state.detail_penalty AS penalty
    INNER JOIN mart.offer_latest AS offer
        ON
            offer.property_id = penalty.property_id
            AND offer.offer_key = penalty.offer_key
            AND offer.source = 'detail'
    LEFT JOIN mart.property_check_in AS arrival ON arrival.property_id = offer.property_id
    CROSS JOIN ref.analysis AS analysis
),

timed AS (
    SELECT
        stated.source,
        stated.property_id,
        stated.offer_key,
        stated.cost,
        stated.is_refundable,
        stated.span['begins_at'] <= stated.last_seen_at
        AND coalesce(stated.span['ends_at'] > stated.last_seen_at, TRUE) AS applies
    FROM stated
)

SELECT
    timed.source,
    timed.property_id,
    timed.offer_key,
    -- A penalty of unknown cost may be the larger one.
    CASE
        WHEN
            bool_or(timed.is_refundable) IS FALSE AND coalesce(max(timed.cost) FILTER (WHERE timed.applies), 0) = 0
            THEN NULL
        WHEN count(*) FILTER (WHERE timed.applies) = 0 THEN 0
        WHEN count(*) FILTER (WHERE timed.applies AND timed.cost IS NULL) = 0
            THEN max(timed.cost) FILTER (WHERE timed.applies)
    END::DECIMAL(18, 4) AS amount
FROM timed
GROUP BY timed.source, timed.property_id, timed.offer_key
