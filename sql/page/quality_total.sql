-- One row: the checks of the audit of the last published sweep, by result.
-- critical: Number of failed checks that block publishing.
SELECT
    count(*) AS checks,
    count(*) FILTER (WHERE outcome = 'failed') AS failed,
    count(*) FILTER (WHERE outcome = 'failed' AND severity = 'critical') AS critical,
    count(*) FILTER (WHERE outcome = 'not_judged') AS not_judged
FROM mart.quality
WHERE sweep_id = (SELECT max_by(sweep.sweep_id, sweep.started_at) FROM mart.sweep)
