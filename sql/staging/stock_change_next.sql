-- One row per room of a cell whose number of bookable rooms differs from the previous answer.
-- Boards, policies and room stays of a room repeat its number, so it is counted once per room. Among offers that
-- were last seen at different times, the latest counts: earlier changes have been counted already.
-- A market that answers without a single offer has more likely failed (see mart.market_silence): its rooms were not
-- gone, and are not re-opened.
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
        max(offer.valid_from) AS gone_from,
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
),

changed AS MATERIALIZED (
    SELECT
        tonight.*,
        before.last_told,
        before.previous_seen_at,
        before.gone_from,
        before.is_offered
    FROM tonight
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
)

SELECT
    sweep.sweep_id,
    sweep.started_at AS changed_at,
    coalesce(changed.last_told['seen_at'], changed.previous_seen_at) AS previous_seen_at,
    changed.source,
    changed.cell_key,
    changed.property_id,
    changed.market,
    changed.product_type,
    changed.check_in,
    changed.nights,
    changed.party,
    changed.room_id,
    changed.last_told['rooms'] AS rooms_before,
    changed.rooms_after
FROM changed
CROSS JOIN night.sweep AS sweep
ANTI JOIN night.market_silence AS silence
    ON
        NOT changed.is_offered
        AND silence.source = changed.source
        AND silence.market = changed.market
        AND silence.started_at = changed.previous_seen_at
        AND silence.sold_at < changed.gone_from
