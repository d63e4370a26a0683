-- One row per source and offer key as it stands after this sweep, gone ones included while their stay lies ahead.
WITH observed AS (
    SELECT
        observed.source,
        observed.offer_key,
        observed.cell_key,
        observed.property_id,
        observed.market,
        observed.product_type,
        observed.check_in,
        observed.nights,
        observed.party,
        observed.currency_asked,
        observed.currency,
        observed.room_stay_id,
        observed.room_id,
        observed.room_name,
        observed.board_id,
        observed.board_name,
        observed.policy_key,
        observed.refundability,
        observed.free_cancel_hours,
        observed.free_cancel_until,
        observed.product_id,
        TRUE AS is_offered,
        observed.total,
        observed.pre_promo_total,
        observed.discount_pct,
        observed.floor,
        observed.available_rooms,
        observed.promotion_key,
        observed.included_charges,
        observed.excluded_charges,
        observed.resort_fee,
        observed.child_resort_fee,
        observed.city_taxes,
        observed.hotel_service_fee,
        coalesce(observed.change, observed.before.change) AS change,
        CASE WHEN observed.change IS NULL THEN observed.before.valid_from ELSE sweep.started_at END AS valid_from,
        coalesce(observed.before.first_seen_at, sweep.started_at) AS first_seen_at,
        sweep.started_at AS last_seen_at,
        CASE WHEN observed.change IS NULL THEN observed.before.snapshots + 1 ELSE 1 END AS snapshots,
        -- From one day to the next, nothing is unseen.
        CASE
            WHEN observed.change IS NULL
                THEN
                    greatest(
                        observed.before.longest_unseen_days,
                        nullif(
                            date_diff('day', mart.utc(observed.before.last_seen_at), mart.utc(sweep.started_at)), 1
                        )
                    )::INTEGER
            ELSE 0
        END AS longest_unseen_days,
        NULL::TIMESTAMPTZ AS unobserved_since,
        NULL::TIMESTAMPTZ AS doubted_since,
        CASE
            WHEN observed.change IS NULL THEN observed.before.began_sweep_id ELSE sweep.sweep_id
        END AS began_sweep_id,
        CASE
            WHEN observed.change IS NULL THEN observed.before.began_search_id ELSE observed.search_id
        END AS began_search_id,
        CASE
            WHEN observed.change IS NULL THEN observed.before.began_offer_no ELSE observed.offer_no
        END AS began_offer_no,
        sweep.sweep_id AS seen_sweep_id,
        observed.search_id AS seen_search_id,
        observed.offer_no AS seen_offer_no,
        observed.is_whole
    FROM night.offer_observed AS observed
    CROSS JOIN night.sweep AS sweep
),

-- Stays that were answered tonight; where an offer's own cell was not requested, in another currency.
in_other_currency AS (
    SELECT DISTINCT
        cell.source,
        cell.property_id,
        cell.market,
        cell.product_type,
        cell.check_in,
        cell.nights,
        cell.party
    FROM night.cell_observed AS cell
    WHERE cell.is_answered
),

-- Of a property that no search of the night concerns in its market, nothing more will be heard.
requested AS (
    SELECT DISTINCT
        cell.property_id,
        cell.market
    FROM night.cell_observed AS cell
),

unseen AS (
    SELECT
        before.* EXCLUDE (is_seen),
        cell.is_answered_whole,
        cell.is_answered,
        coalesce(cell.is_left_out, FALSE) AS is_left_out,
        cell.search_id AS cell_search_id,
        sweep.sweep_id,
        sweep.started_at,
        cell.cell_key IS NOT NULL AS is_asked,
        cell.cell_key IS NULL
        AND (
            other.property_id IS NOT NULL
            OR requested.property_id IS NULL
            OR date_diff('day', mart.utc(before.last_seen_at)::DATE, sweep.snapshot_date) > analysis.unrequested_days
        ) AS is_no_longer_asked
    FROM night.offer_ending AS before
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN night.cell_observed AS cell
        ON
            cell.source = before.source
            AND cell.property_id = before.property_id
            AND cell.cell_key = before.cell_key
    LEFT JOIN in_other_currency AS other
        ON
            cell.cell_key IS NULL
            AND other.source = before.source
            AND other.property_id = before.property_id
            AND other.market = before.market
            AND other.product_type = before.product_type
            AND other.check_in = before.check_in
            AND other.nights = before.nights
            AND other.party = before.party
    LEFT JOIN requested
        ON
            requested.property_id = before.property_id
            AND requested.market = before.market
    WHERE before.check_in > sweep.snapshot_date AND NOT before.is_seen
)

SELECT * FROM observed

UNION ALL BY NAME

-- Answered without the offer: it is gone, now or since an earlier sweep.
SELECT
    unseen.* EXCLUDE (
        is_answered_whole, is_answered, is_left_out, cell_search_id, sweep_id, started_at, is_asked,
        is_no_longer_asked
    ) REPLACE (
        FALSE AS is_offered,
        NULL AS total,
        NULL AS pre_promo_total,
        NULL AS discount_pct,
        NULL AS floor,
        NULL AS available_rooms,
        NULL AS promotion_key,
        'gone' AS change,
        CASE WHEN unseen.is_offered THEN unseen.started_at ELSE unseen.valid_from END AS valid_from,
        unseen.started_at AS last_seen_at,
        CASE WHEN unseen.is_offered THEN 1 ELSE unseen.snapshots + 1 END AS snapshots,
        CASE
            WHEN unseen.is_offered THEN 0
            ELSE
                greatest(
                    unseen.longest_unseen_days,
                    nullif(date_diff('day', mart.utc(unseen.last_seen_at), mart.utc(unseen.started_at)), 1)
                )::INTEGER
        END AS longest_unseen_days,
        NULL::TIMESTAMPTZ AS unobserved_since,
        NULL::TIMESTAMPTZ AS doubted_since,
        CASE WHEN unseen.is_offered THEN unseen.sweep_id ELSE unseen.began_sweep_id END AS began_sweep_id,
        CASE WHEN unseen.is_offered THEN unseen.cell_search_id ELSE unseen.began_search_id END AS began_search_id,
        NULL AS began_offer_no,
        unseen.sweep_id AS seen_sweep_id,
        unseen.cell_search_id AS seen_search_id,
        NULL AS seen_offer_no,
        TRUE AS is_whole
    )
FROM unseen
WHERE unseen.is_answered_whole

UNION ALL BY NAME

-- Not answered, or not requested: nothing is known, so only the mark changes. An offer that an answered list left open
-- is in doubt, also if the request for its property alone failed. So is one whose stay is now requested in another
-- currency, although no answer is missing; one whose property is not requested at all; or one that was last seen so
-- long ago that its stay, party, product type or kind of search must have left the spec. Horizons request far stays
-- once a week or less, and details are requested by turns: one night says nothing.
SELECT
    unseen.* EXCLUDE (
        is_answered_whole, is_answered, is_left_out, cell_search_id, sweep_id, started_at, is_asked,
        is_no_longer_asked
    ) REPLACE (
        CASE
            WHEN unseen.is_asked THEN coalesce(unseen.unobserved_since, unseen.started_at)
            WHEN unseen.is_no_longer_asked THEN NULL
            ELSE unseen.unobserved_since
        END AS unobserved_since,
        CASE
            WHEN unseen.is_answered OR unseen.is_left_out OR unseen.is_no_longer_asked
                THEN coalesce(unseen.doubted_since, unseen.started_at)
            ELSE unseen.doubted_since
        END AS doubted_since
    )
FROM unseen
WHERE unseen.is_answered_whole IS NOT TRUE
