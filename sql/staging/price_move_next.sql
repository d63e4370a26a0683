-- One row per source, market, product type and lead days of this sweep: how totals moved since offers were last seen.
WITH pair AS (
    SELECT
        observed.source,
        observed.market,
        observed.product_type,
        date_diff('day', sweep.snapshot_date, observed.check_in) AS lead_days,
        sweep.sweep_id,
        observed.total,
        before.total AS total_before,
        ln(observed.total::DOUBLE / before.total::DOUBLE) AS change,
        -- Two sweeps of one day are a day apart at most.
        greatest(date_diff('day', (before.last_seen_at AT TIME ZONE 'UTC')::DATE, sweep.snapshot_date), 1) AS days
    FROM night.offer_observed AS observed
    CROSS JOIN night.sweep AS sweep
    LEFT JOIN state.offer_open AS before
        ON
            before.source = observed.source
            AND before.property_id = observed.property_id
            AND before.offer_key = observed.offer_key
            AND before.is_offered
            AND before.total > 0
            -- A dearer product of the key stands in for one that could not be read: that is no change of price.
            AND (observed.source = 'multi' OR (observed.is_whole AND before.is_whole))
    WHERE observed.total > 0
)

SELECT
    any_value(pair.sweep_id) AS sweep_id,
    pair.source,
    pair.market,
    pair.product_type,
    pair.lead_days,
    count(*) AS seen,
    count(pair.total_before) AS pairs,
    count(*) FILTER (WHERE pair.total > pair.total_before) AS raised,
    count(*) FILTER (WHERE pair.total < pair.total_before) AS lowered,
    -- Sums of floats differ by the order of the rows; sums of whole billionths do not.
    coalesce(sum(round(pair.change / pair.days * 1e9)::HUGEINT), 0) / 1e9 AS drift,
    coalesce(sum(round(pair.change * pair.change * 1e9)::HUGEINT), 0) / 1e9 AS squares
FROM pair
GROUP BY pair.source, pair.market, pair.product_type, pair.lead_days
