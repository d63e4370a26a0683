-- One row per source, market and product type: how many stays, rooms and boards had a change of cancellation policy.
-- planned: Number of requested cells.
-- answered: Number of requested cells whose latest request was answered.
-- comparable: Number of combinations of stay, room and board on sale whose policy could have changed.
-- drifted: Number of policy changes in the last reference_days of ref.analysis; see mart.policy_drift.
-- stricter: Number of changes to a stricter policy.
-- looser: Number of changes to a looser policy.
-- median_hours: Median of the hours by which the deadline moved; > 0: earlier, so stricter.
-- properties: Number of properties with a change.
-- last_drifted_at: Start of the last sweep that saw a change.
WITH sold AS (
    SELECT
        held.source,
        held.market,
        held.product_type,
        sum(held.products)::BIGINT AS comparable
    FROM mart.stay_room_board AS held
    GROUP BY held.source, held.market, held.product_type
),

moved AS (
    SELECT
        drift.source,
        drift.market,
        drift.product_type,
        count(*) AS drifted,
        count(*) FILTER (WHERE drift.drift = 'stricter') AS stricter,
        count(*) FILTER (WHERE drift.drift = 'looser') AS looser,
        median(drift.free_hours_after - drift.free_hours_before) AS median_hours,
        count(DISTINCT drift.property_id) AS properties,
        max(drift.drifted_at) AS last_drifted_at
    FROM mart.policy_drift AS drift
    CROSS JOIN ref.analysis AS analysis
    WHERE
        mart.utc(drift.drifted_at)
        > (SELECT mart.utc(max(sweep.started_at)) FROM mart.sweep AS sweep) - to_days(analysis.reference_days)
    GROUP BY drift.source, drift.market, drift.product_type
)

SELECT
    cell.source,
    cell.market,
    cell.product_type,
    cell.planned,
    cell.answered,
    coalesce(sold.comparable, 0) AS comparable,
    coalesce(moved.drifted, 0) AS drifted,
    coalesce(moved.stricter, 0) AS stricter,
    coalesce(moved.looser, 0) AS looser,
    moved.median_hours,
    coalesce(moved.properties, 0) AS properties,
    moved.last_drifted_at
FROM mart.market_coverage AS cell
LEFT JOIN sold
    ON
        sold.source = cell.source
        AND sold.market = cell.market
        AND sold.product_type = cell.product_type
LEFT JOIN moved
    ON
        moved.source = cell.source
        AND moved.market = cell.market
        AND moved.product_type = cell.product_type
