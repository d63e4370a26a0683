-- One row per cancel policy on sale and stay length: its strictness.
-- strictness: Mean share of total that cancelling costs over cancel_horizon_days of ref.analysis; NULL: unknown.
-- It is the area under what cancelling costs, over total and horizon: 0 is free until check-in, 1 all lost throughout.
-- Offers of lists and details share a policy: amounts and dates, which only details state, are each offer's own.
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
