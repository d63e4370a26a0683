-- One row per source and offer key that has changed since it was first seen: its promotion, or when it had none.
-- An offer that is on sale without a promotion needs no row. Offers that leave the state lose theirs.
SELECT before.*
FROM state.promotion_open AS before
ANTI JOIN night.promotion_observed AS observed
    ON
        observed.source = before.source
        AND observed.property_id = before.property_id
        AND observed.offer_key = before.offer_key
CROSS JOIN night.sweep AS sweep
ANTI JOIN night.offer_ending AS begun
    ON
        begun.source = before.source
        AND begun.property_id = before.property_id
        AND begun.offer_key = before.offer_key
        AND begun.check_in <= sweep.snapshot_date
        AND NOT begun.is_seen

UNION ALL

SELECT
    observed.source,
    observed.offer_key,
    observed.property_id,
    change.check_in,
    observed.promoted_from,
    observed.plain_seen_at,
    observed.promoted_seen_at,
    observed.promotion_key,
    observed.least_depth_pct,
    observed.most_depth_pct
FROM night.promotion_observed AS observed
INNER JOIN night.offer_change AS change
    ON
        change.source = observed.source
        AND change.property_id = observed.property_id
        AND change.offer_key = observed.offer_key
CROSS JOIN night.sweep AS sweep
WHERE
    (observed.promoted_from IS NOT NULL OR observed.plain_seen_at IS NOT NULL)
    AND (change.change <> 'gone' OR change.check_in > sweep.snapshot_date)
