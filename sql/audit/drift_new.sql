-- One row per deviation from the supplier's document that the last published night did not have.
SELECT
    drift.market,
    NULL::BIGINT AS property_id,
    NULL::BIGINT AS search_id,
    NULL::INTEGER AS offer_no,
    drift.kind || ' at ' || drift.path || ': ' || drift.detail || ', ' || sum(drift.occurrences) || ' times' AS reason
FROM sweep_files.drift AS drift
ANTI JOIN before_files.drift AS before
    ON
        before.path = drift.path
        AND before.kind = drift.kind
        AND before.detail = drift.detail
WHERE EXISTS (SELECT 1 FROM before_files.search)
GROUP BY drift.market, drift.path, drift.kind, drift.detail
