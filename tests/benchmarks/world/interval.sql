-- One row per interval of a series of a batch, with the columns of the state as publication leaves them, and
-- `night`, `closed_night`: the nights whose publications began and ended it; NULL: open.
WITH spanned AS (
    SELECT
        change.*,
        series.* EXCLUDE (series_no, cell_no), -- noqa: RF02
        lead(change.night) OVER in_time AS next_night,
        coalesce(lead(change.night_before) OVER in_time, answered.last_night) AS seen_night,
        first(change.night) OVER in_time AS known_night,
        lag(change.night) OVER in_time IS NULL AS is_first,
        lag(change.is_offered) OVER in_time AS was_offered,
        lead(change.is_offered) OVER in_time AS will_be_offered,
        lag(change.total_cents) OVER in_time AS previous_cents,
        -- What was last on sale: of an offer that is gone, the interval before.
        CASE WHEN change.is_offered THEN change.total_cents ELSE previous_cents END AS sent_cents,
        CASE WHEN change.is_offered THEN seen_night ELSE change.night_before END AS sent_night,
        night_of(series.check_in) AS began_night,
        getvariable('known_nights') - 1 AS this_night
    FROM change
    INNER JOIN series ON series.series_no = change.series_no
    INNER JOIN (
        SELECT
            cell_no,
            max(night) AS last_night
        FROM cell_night
        WHERE outcome = 'answered' AND night < getvariable('known_nights')
        GROUP BY cell_no
    ) AS answered ON answered.cell_no = change.cell_no
    WINDOW in_time AS (PARTITION BY change.series_no ORDER BY change.night)
)

SELECT
    spanned.source,
    spanned.offer_key,
    spanned.cell_key,
    spanned.property_id,
    spanned.market,
    spanned.product_type,
    spanned.check_in,
    spanned.nights,
    spanned.party,
    spanned.currency AS currency_asked,
    spanned.currency,
    0 AS room_stay_id,
    spanned.room_id,
    spanned.room_name,
    spanned.board_id,
    spanned.board_name,
    spanned.policy_key,
    spanned.refundability,
    spanned.free_cancel_hours,
    free_cancel_until(spanned.source, spanned.check_in, spanned.free_cancel_hours) AS free_cancel_until,
    product_id(spanned.offer_key, spanned.has_passing_product, spanned.sent_night) AS product_id,
    spanned.is_offered,
    money(spanned.total_cents) AS total,
    money(spanned.pre_promo_cents) AS pre_promo_total,
    nullif(spanned.promotion_pct, 0)::DOUBLE AS discount_pct,
    money(spanned.floor_cents) AS floor,
    spanned.available_rooms,
    promotion.promotion_key,
    CASE WHEN spanned.source = 'detail' THEN included_charges(spanned.sent_cents, spanned.tax_pct) END
        AS included_charges,
    CASE WHEN spanned.source = 'detail' THEN money(excluded_cents(spanned.resort_cents, spanned.city_cents)) END
        AS excluded_charges,
    CASE WHEN spanned.source = 'detail' THEN money(spanned.resort_cents) END AS resort_fee,
    CASE WHEN spanned.source = 'detail' THEN money(spanned.city_cents) END AS city_taxes,
    CASE
        WHEN spanned.is_first THEN 'first'
        WHEN NOT spanned.is_offered THEN 'gone'
        WHEN spanned.was_offered THEN 'value'
        ELSE 'back'
    END AS change,
    started_at(spanned.night) AS valid_from,
    started_at(spanned.known_night) AS first_seen_at,
    started_at(spanned.seen_night) AS last_seen_at,
    CASE
        WHEN spanned.seen_night + 1 < least(coalesce(spanned.next_night, spanned.began_night), spanned.this_night + 1)
            THEN started_at(spanned.seen_night + 1)
    END AS unobserved_since,
    sweep_id(spanned.night) AS began_sweep_id,
    beginning.search_id AS began_search_id,
    CASE WHEN spanned.is_offered THEN spanned.offer_no END AS began_offer_no,
    sweep_id(spanned.seen_night) AS seen_sweep_id,
    seen.search_id AS seen_search_id,
    CASE WHEN spanned.is_offered THEN spanned.offer_no END AS seen_offer_no,
    CASE
        WHEN spanned.next_night IS NOT NULL THEN started_at(spanned.next_night)
        WHEN spanned.began_night <= spanned.this_night THEN spanned.check_in::TIMESTAMP AT TIME ZONE 'UTC'
    END AS valid_to,
    CASE
        WHEN spanned.next_night IS NULL THEN CASE WHEN spanned.began_night <= spanned.this_night THEN 'stay_began' END
        WHEN NOT spanned.will_be_offered THEN 'gone'
        WHEN spanned.is_offered THEN 'value'
        ELSE 'back'
    END AS ended_by,
    CASE
        WHEN spanned.next_night IS NOT NULL THEN spanned.next_night
        WHEN spanned.began_night <= spanned.this_night THEN spanned.began_night
    END AS closed_night,
    spanned.night,
    CASE WHEN NOT spanned.is_first THEN started_at(spanned.night_before) END AS previous_seen_at,
    spanned.was_offered AND spanned.is_offered AND spanned.total_cents <> spanned.previous_cents AS is_price_change
FROM spanned
LEFT JOIN promotion ON promotion.promotion_pct = spanned.promotion_pct
INNER JOIN search AS beginning
    ON
        beginning.night = spanned.night
        AND beginning.question_no = spanned.question_no
        AND beginning.asked_no = spanned.asked_no
INNER JOIN search AS seen
    ON
        seen.night = spanned.seen_night
        AND seen.question_no = spanned.question_no
        AND seen.asked_no = spanned.asked_no
