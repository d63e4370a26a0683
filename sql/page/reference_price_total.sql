-- One row: prices before promotions of list offers, compared with their history.
-- comparable: Number of prices with enough history for a verdict.
-- never_charged: Number of prices above all totals ever seen.
-- evergreen: Number of offers never seen without a promotion in reference_days or more.
SELECT
    count(*) FILTER (WHERE reference.reference_verdict <> 'not_enough_history') AS comparable,
    count(*) FILTER (WHERE reference.reference_verdict = 'never_charged') AS never_charged,
    count(*) FILTER (
        WHERE
        reference.plain_seen_at IS NULL
        AND reference.history_days >= analysis.reference_days
        AND reference.longest_unseen_days < analysis.reference_days
    ) AS evergreen
FROM mart.reference_price AS reference
CROSS JOIN ref.analysis AS analysis
WHERE reference.source = 'multi' AND is_within(reference.property_id, reference.market, reference.check_in)
