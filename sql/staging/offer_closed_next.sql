-- One row per interval of an offer key that ends with this sweep.
SELECT
    before.* EXCLUDE (is_seen),
    CASE WHEN change.change IS NULL THEN before.check_in::TIMESTAMPTZ ELSE change.changed_at END AS valid_to,
    coalesce(change.change, 'stay_began') AS ended_by
FROM night.offer_ending AS before
CROSS JOIN night.sweep AS sweep
LEFT JOIN night.offer_change AS change
    ON
        change.source = before.source
        AND change.property_id = before.property_id
        AND change.offer_key = before.offer_key
WHERE
    change.change IS NOT NULL
    OR before.check_in <= sweep.snapshot_date
