-- One row per property and rule: its findings so far.
-- standing: Number of open findings; ended: of those that have ended, counted each time.
-- last_at: Start of the last sweep that saw one of them.
SELECT
    property_id,
    rule,
    count(*) FILTER (WHERE resolved_at IS NULL) AS standing,
    count(*) FILTER (WHERE resolved_at IS NOT NULL) AS ended,
    max(last_flagged_at) AS last_at
FROM report.flag_history
WHERE is_within(property_id, market, check_in)
GROUP BY ALL
ORDER BY ALL
