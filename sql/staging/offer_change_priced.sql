-- One row per change of this sweep, with the total before it.
SELECT
    change.*,
    before.total AS previous_total
FROM night.offer_change AS change
LEFT JOIN state.offer_open AS before
    ON
        before.source = change.source
        AND before.property_id = change.property_id
        AND before.offer_key = change.offer_key
