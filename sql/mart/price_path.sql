-- One row per source, offer key and interval in which its total stayed the same, as check-in approaches.
-- Filter by one property or offer key: the path is computed for every row that you select.
-- lead_days_from: Days from the first sweep that saw this total to check-in.
-- lead_days_seen: Days from the last sweep that saw this total to check-in.
-- snapshots: Number of sweeps that saw the offer at this total.
-- step_no: Position in the path, from 0.
-- total_before: Previous total, in currency; NULL: this is the first.
-- total_per_night: total / nights, in currency.
-- change_pct: 100 x (total / total_before - 1); > 0: dearer; NULL: this is the first.
-- index_first: total in percent of the first total seen of this offer.
-- was_gone: Whether the offer was gone between the previous total and this one.
-- An interval ends when any value of the offer changes; a step ends with a new total, or while the offer is gone.
WITH numbered AS (
    SELECT
        priced.* EXCLUDE (is_only, was_unpriced),
        (priced.was_gone OR priced.total IS DISTINCT FROM priced.total_before) AS is_new,
        count(*) FILTER (WHERE is_new) OVER in_time AS steps,
        first_value(priced.total) OVER in_time AS first_total
    FROM mart.price_interval AS priced
    WHERE NOT priced.is_only
    WINDOW
        in_time AS (PARTITION BY priced.source, priced.property_id, priced.offer_key ORDER BY priced.valid_from)
),

step AS (
    SELECT
        numbered.source,
        numbered.property_id,
        numbered.offer_key,
        any_value(numbered.cell_key) AS cell_key,
        any_value(numbered.market) AS market,
        any_value(numbered.product_type) AS product_type,
        any_value(numbered.check_in) AS check_in,
        any_value(numbered.nights) AS nights,
        any_value(numbered.party) AS party,
        any_value(numbered.currency) AS currency,
        any_value(numbered.room_stay_id) AS room_stay_id,
        any_value(numbered.room_id) AS room_id,
        any_value(numbered.board_id) AS board_id,
        any_value(numbered.policy_key) AS policy_key,
        any_value(numbered.total) AS total,
        numbered.steps - 1 AS step_no,
        sum(numbered.snapshots)::INTEGER AS snapshots,
        min(numbered.valid_from) AS valid_from,
        max(numbered.last_seen_at) AS last_seen_at,
        any_value(numbered.total_before) FILTER (WHERE numbered.is_new) AS total_before,
        bool_or(numbered.was_gone) AS was_gone,
        any_value(numbered.first_total) AS first_total
    FROM numbered
    GROUP BY numbered.source, numbered.property_id, numbered.offer_key, numbered.steps

    UNION ALL BY NAME

    SELECT
        priced.* EXCLUDE (is_only, was_unpriced),
        0 AS step_no,
        priced.total AS first_total
    FROM mart.price_interval AS priced
    WHERE priced.is_only
)

SELECT
    step.* EXCLUDE (total_before, was_gone, first_total),
    (step.total / step.nights)::DECIMAL(18, 4) AS total_per_night,
    date_diff('day', mart.utc(step.valid_from)::DATE, step.check_in) AS lead_days_from,
    date_diff('day', mart.utc(step.last_seen_at)::DATE, step.check_in) AS lead_days_seen,
    step.total_before,
    100.0 * (step.total - step.total_before)::DOUBLE / step.total_before AS change_pct,
    100.0 * step.total::DOUBLE / step.first_total AS index_first,
    step.was_gone
FROM step
