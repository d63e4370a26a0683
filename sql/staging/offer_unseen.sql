-- One row per source and offer key of the state that the sweep did not observe: few, so others join the state with it.
SELECT
    before.source,
    before.property_id,
    before.offer_key
FROM state.offer_open AS before
ANTI JOIN night.offer_observed AS observed
    ON
        observed.source = before.source
        AND observed.property_id = before.property_id
        AND observed.offer_key = before.offer_key
