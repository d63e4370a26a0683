-- One row per cancellation policy on sale, stay length and stretch of time with the same share of total to pay.
-- step_no: Position in time, from 0.
-- from_hours: Hours before check-in from which it costs this; NULL: ever since.
-- until_hours: Hours before check-in until which it costs this; 0: until check-in.
-- cost_share: Cost of cancelling then, as a share of total; > 1: more nights charged than stayed; NULL: unknown.
-- is_free: Whether cancelling is free of charge in this stretch.
-- The terms as pipeline/domain/penalties.py reads them, as shares of any total: percentage x nights charged / nights of
-- the stay where nights are charged, else the percentage, else 1 where nothing is refunded. Only windows count, and a
-- penalty without one always applies. If nothing is refunded, cancelling is never free: where the terms come to
-- nothing, what it costs is unknown. Dates and amounts of detail answers differ by offer: see mart.penalty_step.
WITH sold AS (
    SELECT DISTINCT
        offer.policy_key,
        offer.nights
    FROM state.offer_open AS offer
    WHERE offer.is_offered
),

stated AS (
    SELECT
        sold.policy_key,
        sold.nights,
        least(coalesce(policy.window_hours, 1000001), 1000001) AS begins_hours,
        CASE
            WHEN policy.penalty_pct IS NOT NULL AND coalesce(policy.penalty_nights, 0) > 0
                THEN policy.penalty_pct / 100 * policy.penalty_nights / sold.nights
            WHEN policy.penalty_pct IS NOT NULL THEN policy.penalty_pct / 100
            WHEN coalesce(policy.penalty_nights, 0) = 0 AND policy.is_refundable IS FALSE THEN 1
        END AS cost_share
    FROM sold
    INNER JOIN state.policy AS policy ON policy.policy_key = sold.policy_key
    WHERE policy.window_hours IS NULL OR policy.window_hours > 0
),

kept AS (
    SELECT policy.policy_key
    FROM state.policy AS policy
    GROUP BY policy.policy_key
    HAVING bool_or(policy.is_refundable) IS FALSE
),

-- Before the first penalty, cancelling is free, so the time before all windows is a stretch too.
moment AS (
    SELECT
        sold.policy_key,
        sold.nights,
        1000001 AS begins_hours
    FROM sold
    WHERE sold.policy_key <> 0
    UNION
    SELECT
        stated.policy_key,
        stated.nights,
        stated.begins_hours
    FROM stated
)

SELECT
    moment.policy_key,
    moment.nights,
    (row_number() OVER in_time - 1)::INTEGER AS step_no,
    nullif(moment.begins_hours, 1000001) AS from_hours,
    coalesce(lead(moment.begins_hours) OVER in_time, 0) AS until_hours,
    -- A penalty of unknown cost may be the larger one.
    CASE
        WHEN any_value(kept.policy_key) IS NOT NULL AND coalesce(max(stated.cost_share), 0) = 0 THEN NULL
        WHEN count(stated.policy_key) = 0 THEN 0::DOUBLE
        WHEN count(stated.cost_share) = count(stated.policy_key) THEN max(stated.cost_share)
    END AS cost_share,
    count(stated.policy_key) = 0 AND any_value(kept.policy_key) IS NULL AS is_free
FROM moment
LEFT JOIN stated
    ON
        stated.policy_key = moment.policy_key
        AND stated.nights = moment.nights
        AND stated.begins_hours >= moment.begins_hours
LEFT JOIN kept ON kept.policy_key = moment.policy_key
GROUP BY moment.policy_key, moment.nights, moment.begins_hours
WINDOW in_time AS (PARTITION BY moment.policy_key, moment.nights ORDER BY moment.begins_hours DESC)
