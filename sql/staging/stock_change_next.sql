-- One row per room of a cell whose number of bookable rooms differs from the previous answer.
-- Boards, policies and room stays of a room repeat its number, so it is counted once per room. Among offers that
-- were last seen at different times, the latest counts: earlier changes have been counted already.
WITH tonight AS (
    SELECT
        observed.source,
        observed.property_id,
        observed.cell_key,
        observed.room_id,
        max(observed.available_rooms) AS rooms_after,
        any_value(observed.market) AS market,
        any_value(observed.product_type) AS product_type,
        any_value(observed.check_in) AS check_in,
        any_value(observed.nights) AS nights,
        any_value(observed.party) AS party
    FROM night.offer_observed AS observed
    CROSS JOIN ref.analysis AS analysis
    WHERE observed.available_rooms BETWEEN 0 AND analysis.plausible_rooms
    GROUP BY observed.source, observed.property_id, observed.cell_key, observed.room_id
),

before AS (
    SELECT
        offer.source,
        offer.property_id,
        offer.cell_key,
        offer.room_id,
        max(offer.last_seen_at) AS previous_seen_at,
        bool_or(offer.is_offered) AS is_offered,
        first(
            struct_pack(rooms := offer.available_rooms, seen_at := offer.last_seen_at)
            ORDER BY offer.last_seen_at DESC, offer.available_rooms DESC
        ) FILTER (
            WHERE offer.is_offered AND offer.available_rooms BETWEEN 0 AND analysis.plausible_rooms
        ) AS last_told
    FROM state.offer_open AS offer
    CROSS JOIN ref.analysis AS analysis
    GROUP BY offer.source, offer.property_id, offer.cell_key, offer.room_id
)

SELECT
    sweep.sweep_id,
    sweep.started_at AS changed_at,
    coalesce(before.last_told['seen_at'], before.previous_seen_at) AS previous_seen_at,
    tonight.source,
    tonight.cell_key,
    tonight.property_id,
    tonight.market,
    tonight.product_type,
    tonight.check_in,
    tonight.nights,
    tonight.party,
    tonight.room_id,
    before.last_told['rooms'] AS rooms_before,
    tonight.rooms_after
FROM tonight
CROSS JOIN night.sweep AS sweep
INNER JOIN before
    ON
        before.source = tonight.source
        AND before.property_id = tonight.property_id
        AND before.cell_key = tonight.cell_key
        AND before.room_id IS NOT DISTINCT FROM tonight.room_id
WHERE
    before.last_told['rooms'] <> tonight.rooms_after
    -- On sale without a usable number: no re-opening, and no number to compare with.
    OR NOT before.is_offered
