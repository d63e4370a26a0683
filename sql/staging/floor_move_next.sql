-- One row per hotel-only offer key of the sweep whose floor moved while its total did not.
SELECT
    observed.source,
    observed.offer_key,
    observed.property_id,
    observed.market,
    observed.check_in,
    observed.currency,
    observed.total,
    nullif(before.floor, 0) AS floor_before,
    nullif(observed.floor, 0) AS floor,
    before.last_seen_at AS previous_seen_at,
    sweep.started_at AS moved_at,
    before.seen_sweep_id AS before_sweep_id,
    before.seen_search_id AS before_search_id,
    before.seen_offer_no AS before_offer_no,
    sweep.sweep_id,
    observed.search_id,
    observed.offer_no
FROM night.offer_observed AS observed
INNER JOIN night.offer_ending AS before
    ON
        before.source = observed.source
        AND before.property_id = observed.property_id
        AND before.offer_key = observed.offer_key
CROSS JOIN night.sweep AS sweep
WHERE
    observed.change = 'value'
    AND observed.product_type = 'Hotel'
    AND before.is_offered
    AND before.total = observed.total
    AND nullif(before.floor, 0) IS DISTINCT FROM nullif(observed.floor, 0)
