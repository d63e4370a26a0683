-- One row per cancellation policy on sale and stay length: its strictness.
-- strictness: Mean share of total that cancelling costs over cancel_horizon_days of ref.analysis; NULL: unknown.
-- The area under the cost of cancelling / (total x horizon): 0: free until check-in; 1: the full total at any time.
-- List and detail offers share a policy; amounts and dates, which only details state, differ by offer.
SELECT
    step.policy_key,
    step.nights,
    CASE
        WHEN bool_and(step.cost_share IS NOT NULL OR step.until_hours >= 24 * analysis.cancel_horizon_days)
            THEN
                -- To nine places: the last bit of a sum of fractions depends on the order of its rows.
                round(fsum(
                    step.cost_share
                    * greatest(
                        least(coalesce(step.from_hours, 1000001), 24 * analysis.cancel_horizon_days)
                        - step.until_hours,
                        0
                    )
                ) / (24 * any_value(analysis.cancel_horizon_days)), 9)
    END AS strictness
FROM mart.policy_step AS step
CROSS JOIN ref.analysis AS analysis
GROUP BY step.policy_key, step.nights
