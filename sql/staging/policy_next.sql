-- One row per cancellation penalty of a policy key that no earlier published sweep had, as an offer states it.
WITH example AS (
    SELECT
        observed.policy_key,
        min({ 'search_id': observed.search_id, 'offer_no': observed.offer_no }) AS place
    FROM night.offer_observed AS observed
    ANTI JOIN state.policy AS known ON known.policy_key = observed.policy_key
    WHERE observed.policy_key <> 0
    GROUP BY observed.policy_key
),

-- A penalty that is stated twice counts once, and the order is not part of the key.
stated AS (
    SELECT DISTINCT
        example.policy_key,
        penalty.window_hours,
        penalty.penalty_pct,
        penalty.penalty_nights,
        penalty.is_refundable
    FROM sweep_files.penalty AS penalty
    INNER JOIN example
        ON
            example.place.search_id = penalty.search_id
            AND example.place.offer_no = penalty.offer_no
)

SELECT
    stated.policy_key,
    row_number() OVER (
        PARTITION BY stated.policy_key
        ORDER BY
            stated.window_hours DESC NULLS FIRST,
            stated.penalty_pct ASC NULLS FIRST,
            stated.penalty_nights ASC NULLS FIRST,
            stated.is_refundable ASC NULLS FIRST
    ) - 1 AS penalty_no,
    stated.window_hours,
    stated.penalty_pct,
    stated.penalty_nights,
    stated.is_refundable
FROM stated
