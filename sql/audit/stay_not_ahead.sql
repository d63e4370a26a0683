-- One row per search for a stay that begins on or before the day of the sweep, or has no night.
SELECT
    search.market,
    NULL::BIGINT AS property_id,
    search.search_id,
    NULL::INTEGER AS offer_no,
    'check-in ' || search.check_in || ', ' || search.nights || ' nights, requested on ' || sweep.snapshot_date AS reason
FROM sweep_files.search AS search
CROSS JOIN audit.sweep AS sweep
WHERE search.check_in <= sweep.snapshot_date OR search.nights < 1
