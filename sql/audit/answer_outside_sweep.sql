-- One row per search that was sent before its sweep began or after it ended: a stale answer.
SELECT
    search.market,
    NULL::BIGINT AS property_id,
    search.search_id,
    NULL::INTEGER AS offer_no,
    'sent at ' || search.started_at || ', the sweep ran from ' || sweep.started_at || ' to ' || sweep.finished_at
        AS reason
FROM sweep_files.search AS search
CROSS JOIN audit.sweep AS sweep
WHERE search.started_at < sweep.started_at OR search.ended_at > sweep.finished_at
