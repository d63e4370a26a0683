-- One row per parity episode that ends with this sweep; exact pairs only.
WITH ended AS (
    SELECT
        before.*,
        sweep.started_at,
        CASE
            WHEN observed.reference_offer_key <> before.reference_offer_key THEN 'reference_changed'
            WHEN observed.currency_basis <> before.currency_basis THEN 'basis_changed'
            WHEN NOT observed.is_losing THEN 'resolved'
            WHEN observed.offer_key IS NULL AND (gone.offer_key IS NOT NULL OR there.offer_key IS NOT NULL) THEN 'gone'
            WHEN observed.offer_key IS NULL AND coalesce(dropped.ended_by, dropped_there.ended_by) IS NOT NULL
                THEN coalesce(dropped.ended_by, dropped_there.ended_by)
            WHEN before.check_in <= sweep.snapshot_date THEN 'stay_began'
        END AS ended_by
    FROM state.parity_open AS before
    CROSS JOIN night.sweep AS sweep
    LEFT JOIN night.parity_observed AS observed
        ON
            observed.match_grade = 'exact'
            AND observed.source = before.source
            AND observed.property_id = before.property_id
            AND observed.offer_key = before.offer_key
    LEFT JOIN night.parity_gone AS gone
        ON
            gone.source = before.source
            AND gone.property_id = before.property_id
            AND gone.offer_key = before.offer_key
    LEFT JOIN night.parity_gone AS there
        ON
            there.source = before.source
            AND there.property_id = before.property_id
            AND there.offer_key = before.reference_offer_key
    LEFT JOIN night.offer_dropped AS dropped
        ON
            dropped.source = before.source
            AND dropped.property_id = before.property_id
            AND dropped.offer_key = before.offer_key
    LEFT JOIN night.offer_dropped AS dropped_there
        ON
            dropped_there.source = before.source
            AND dropped_there.property_id = before.property_id
            AND dropped_there.offer_key = before.reference_offer_key
)

SELECT
    ended.* EXCLUDE (started_at),
    CASE WHEN ended.ended_by = 'stay_began' THEN ended.check_in::TIMESTAMPTZ ELSE ended.started_at END AS ended_at
FROM ended
WHERE ended.ended_by IS NOT NULL
