-- One row per cancellation policy with which an offer was ever sold: its terms in words.
-- penalties: Number of distinct penalties of the policy.
-- terms: The penalties in words, earliest first.
SELECT
    policy.policy_key,
    count(*) AS penalties,
    string_agg(
        coalesce(format('{} h', policy.window_hours), 'always')
        || ': ' || coalesce(format('{:g} %', policy.penalty_pct), '?')
        || CASE WHEN policy.penalty_nights > 0 THEN format(' of {:g} nights', policy.penalty_nights) ELSE '' END
        || CASE WHEN policy.is_refundable IS FALSE THEN ', not refundable' ELSE '' END,
        '; ' ORDER BY policy.penalty_no
    ) AS terms
FROM state.policy AS policy
GROUP BY policy.policy_key
