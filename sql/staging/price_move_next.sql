-- One row per source, market, product type and lead days of this sweep: how totals moved between two answers in a row.
-- A change of a total is spread over the days between its two answers, as its time is unknown: a pair of weekly
-- sweeps covers seven lead days, and offers were seen on the last of them only.
WITH pair AS (
    SELECT
        observed.source,
        observed.market,
        observed.product_type,
        date_diff('day', sweep.snapshot_date, observed.check_in) AS lead_days,
        sweep.sweep_id,
        observed.total,
        CASE
            WHEN
                observed.before.is_offered
                AND observed.before.total > 0
                -- A dearer product of the key may represent an unreadable one: that is not a change of price.
                AND (observed.source = 'multi' OR (observed.is_whole AND observed.before.is_whole))
                THEN observed.before.total
        END AS total_before,
        ln(observed.total::DOUBLE / total_before::DOUBLE) AS change,
        -- Two sweeps of one day are a day apart at most.
        greatest(
            date_diff('day', mart.utc(observed.before.last_seen_at)::DATE, sweep.snapshot_date), 1
        ) AS days
    FROM night.offer_observed AS observed
    CROSS JOIN night.sweep AS sweep
    WHERE observed.total > 0
),

seen AS (
    SELECT
        pair.source,
        pair.market,
        pair.product_type,
        pair.lead_days,
        count(*) AS seen,
        count(pair.total_before) AS pairs,
        count(*) FILTER (WHERE pair.total > pair.total_before) AS raised,
        count(*) FILTER (WHERE pair.total < pair.total_before) AS lowered,
        -- Sums of floats differ by the order of the rows; sums of whole billionths do not.
        sum(round(pair.change * pair.change * 1e9)::HUGEINT) AS squares
    FROM pair
    GROUP BY pair.source, pair.market, pair.product_type, pair.lead_days
),

-- Summed before it is spread: there are fewer distances between two answers than offers.
by_distance AS (
    SELECT
        pair.source,
        pair.market,
        pair.product_type,
        pair.lead_days,
        pair.days,
        count(*) AS spanning,
        sum(round(pair.change / pair.days * 1e9)::HUGEINT) AS drift
    FROM pair
    WHERE pair.total_before IS NOT NULL
    GROUP BY pair.source, pair.market, pair.product_type, pair.lead_days, pair.days
),

spread AS (
    SELECT
        by_distance.source,
        by_distance.market,
        by_distance.product_type,
        by_distance.lead_days + unnest(range(by_distance.days)) AS lead_days,
        by_distance.spanning,
        by_distance.drift
    FROM by_distance
),

spanned AS (
    SELECT
        spread.source,
        spread.market,
        spread.product_type,
        spread.lead_days,
        sum(spread.spanning) AS spanning,
        sum(spread.drift) AS drift
    FROM spread
    GROUP BY spread.source, spread.market, spread.product_type, spread.lead_days
)

SELECT
    sweep.sweep_id,
    coalesce(seen.source, spanned.source) AS source,
    coalesce(seen.market, spanned.market) AS market,
    coalesce(seen.product_type, spanned.product_type) AS product_type,
    coalesce(seen.lead_days, spanned.lead_days) AS lead_days,
    coalesce(seen.seen, 0) AS seen,
    coalesce(seen.pairs, 0) AS pairs,
    coalesce(seen.raised, 0) AS raised,
    coalesce(seen.lowered, 0) AS lowered,
    coalesce(spanned.spanning, 0) AS spanning,
    coalesce(spanned.drift, 0) / 1e9 AS drift,
    coalesce(seen.squares, 0) / 1e9 AS squares
FROM seen
FULL JOIN spanned
    ON
        spanned.source = seen.source
        AND spanned.market = seen.market
        AND spanned.product_type = seen.product_type
        AND spanned.lead_days = seen.lead_days
CROSS JOIN night.sweep AS sweep
