-- One row per source, offer key and interval in which its total stayed the same, as check-in approaches.
-- Filter by one property or offer key: the path is computed for every row that you select.
-- lead_days_from: Days from the first sweep that saw this total to check-in.
-- lead_days_seen: Days from the last sweep that saw this total to check-in.
-- snapshots: Number of sweeps that saw the offer at this total.
-- step_no: Position in the path, from 0.
-- total_before: Previous total, in currency; NULL: this is the first.
-- change_pct: 100 x (total / total_before - 1); > 0: dearer; NULL: this is the first.
-- index_first: total in percent of the first total seen of this offer.
-- was_gone: Whether the offer was gone between the previous total and this one.
WITH told AS (
    SELECT
        history.source,
        history.property_id,
        history.offer_key,
        history.cell_key,
        history.market,
        history.product_type,
        history.check_in,
        history.nights,
        history.party,
        history.currency,
        history.room_stay_id,
        history.room_id,
        history.board_id,
        history.policy_key,
        history.is_offered,
        history.total,
        history.snapshots,
        history.valid_from,
        history.last_seen_at,
        count(*) FILTER (WHERE NOT history.is_offered) OVER in_time AS times_gone
    FROM mart.offer_history AS history
    -- In a partly unreadable detail answer, a dearer product may represent the key.
    WHERE history.is_whole OR history.source = 'multi'
    WINDOW in_time AS (PARTITION BY history.source, history.property_id, history.offer_key ORDER BY history.valid_from)
),

-- Values other than the total may change within a stretch; a new one begins with a new total, or after being gone.
begun AS (
    SELECT
        told.*,
        coalesce(
            lag(told.total) OVER in_time = told.total AND lag(told.times_gone) OVER in_time = told.times_gone, FALSE
        ) AS is_same
    FROM told
    WHERE told.total > 0
    WINDOW in_time AS (PARTITION BY told.source, told.property_id, told.offer_key ORDER BY told.valid_from)
),

numbered AS (
    SELECT
        begun.*,
        count(*) FILTER (WHERE NOT begun.is_same) OVER in_time - 1 AS step_no
    FROM begun
    WINDOW in_time AS (PARTITION BY begun.source, begun.property_id, begun.offer_key ORDER BY begun.valid_from)
),

stretch AS (
    SELECT
        numbered.* EXCLUDE (is_offered, is_same, valid_from, last_seen_at, snapshots), -- noqa: RF03
        sum(numbered.snapshots)::INTEGER AS snapshots,
        min(numbered.valid_from) AS valid_from,
        max(numbered.last_seen_at) AS last_seen_at
    FROM numbered
    GROUP BY ALL
)

SELECT
    stretch.* EXCLUDE (times_gone), -- noqa: RF03
    (stretch.total / stretch.nights)::DECIMAL(18, 4) AS total_per_night,
    date_diff('day', (stretch.valid_from AT TIME ZONE 'UTC')::DATE, stretch.check_in) AS lead_days_from,
    date_diff('day', (stretch.last_seen_at AT TIME ZONE 'UTC')::DATE, stretch.check_in) AS lead_days_seen,
    lag(stretch.total) OVER in_time AS total_before,
    100.0 * (stretch.total - lag(stretch.total) OVER in_time)::DOUBLE / lag(stretch.total) OVER in_time AS change_pct,
    100.0 * stretch.total::DOUBLE / first_value(stretch.total) OVER in_time AS index_first,
    coalesce(stretch.times_gone > lag(stretch.times_gone) OVER in_time, FALSE) AS was_gone
FROM stretch
WINDOW in_time AS (PARTITION BY stretch.source, stretch.property_id, stretch.offer_key ORDER BY stretch.step_no)
