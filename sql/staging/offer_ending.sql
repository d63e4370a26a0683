-- One row per source and offer key of the state that is unseen tonight, has changed, or whose stay has begun.
-- is_seen: Whether the sweep observed it.
-- Few rows: whatever needs them reads them here, so that the state is read in full width once.
WITH ending AS MATERIALIZED (
    SELECT
        before.source,
        before.property_id,
        before.offer_key,
        observed.offer_key IS NOT NULL AS is_seen
    FROM state.offer_open AS before
    CROSS JOIN night.sweep AS sweep
    LEFT JOIN night.offer_observed AS observed
        ON
            observed.source = before.source
            AND observed.property_id = before.property_id
            AND observed.offer_key = before.offer_key
    WHERE
        observed.offer_key IS NULL
        OR observed.change IS NOT NULL
        OR before.check_in <= sweep.snapshot_date
)

SELECT
    before.*,
    ending.is_seen
FROM state.offer_open AS before
INNER JOIN ending
    ON
        ending.source = before.source
        AND ending.property_id = before.property_id
        AND ending.offer_key = before.offer_key
