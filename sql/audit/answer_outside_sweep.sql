-- One row per search that was sent more than five minutes before its sweep began or after it ended: a stale answer.
-- A clock that is set right during a sweep moves by less, and its answers are no less true.
SELECT
    search.market,
    NULL::BIGINT AS property_id,
    search.search_id,
    NULL::INTEGER AS offer_no,
    'sent at ' || search.started_at || ', the sweep ran from ' || sweep.started_at || ' to ' || sweep.finished_at
        AS reason
FROM sweep_files.search AS search
CROSS JOIN audit.sweep AS sweep
WHERE
    search.started_at < sweep.started_at - INTERVAL 5 MINUTES
    OR search.ended_at > sweep.finished_at + INTERVAL 5 MINUTES
