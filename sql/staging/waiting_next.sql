-- One row per source, market, product type and lead days: what waiting gained or cost, for stays that have begun.
-- A market requested in several currencies is counted in one of them, the first by name.
-- For each offer of such a stay, its total on each day on sale is compared with later answers. A market that answers
-- without a single offer has more likely failed (see mart.market_silence): that is no answer.
-- A day on which no such stay was answered that many days ahead counts for no offer: it would for those alone that kept
-- their price until the next answer.
WITH begun AS (
    SELECT
        offer.source,
        offer.property_id,
        offer.offer_key,
        offer.market,
        offer.product_type,
        offer.check_in,
        offer.is_offered,
        offer.is_whole,
        offer.total,
        offer.valid_from,
        offer.last_seen_at
    FROM night.offer_ending AS offer
    CROSS JOIN night.sweep AS sweep
    WHERE offer.check_in <= sweep.snapshot_date
    QUALIFY
        offer.cell_key = first_value(offer.cell_key) OVER (
            PARTITION BY
                offer.source,
                offer.property_id,
                offer.market,
                offer.product_type,
                offer.check_in,
                offer.nights,
                offer.party
            ORDER BY offer.currency, offer.cell_key
        )
),

state_of AS (
    SELECT * FROM begun

    UNION ALL BY NAME

    SELECT
        offer.source,
        offer.property_id,
        offer.offer_key,
        offer.market,
        offer.product_type,
        offer.check_in,
        offer.is_offered,
        offer.is_whole,
        offer.total,
        offer.valid_from,
        offer.last_seen_at
    FROM state.offer_closed AS offer
    SEMI JOIN begun
        ON
            begun.source = offer.source
            AND begun.property_id = offer.property_id
            AND begun.offer_key = offer.offer_key
    -- Only a few check-in dates begin with a night: most of what has ended is skipped here.
    WHERE
        offer.check_in <= (SELECT max(last_begun.check_in) FROM begun AS last_begun)
        AND offer.check_in >= (SELECT min(first_begun.check_in) FROM begun AS first_begun)
),

path AS (
    SELECT
        state_of.*,
        CASE WHEN state_of.is_offered THEN state_of.total END AS own_total,
        min(own_total) OVER later AS lowest_later,
        last_value(own_total IGNORE NULLS) OVER whole AS last_total,
        last_value(state_of.is_offered) OVER whole AS is_offered_last,
        max(state_of.last_seen_at) OVER whole AS answered_last_at,
        max(state_of.last_seen_at) FILTER (WHERE own_total IS NOT NULL) OVER whole AS priced_last_at,
        -- Of two sweeps of one day, the later one counts.
        coalesce(
            min(mart.utc(state_of.valid_from)::DATE) FILTER (WHERE own_total > 0) OVER later
            = mart.utc(state_of.last_seen_at)::DATE,
            FALSE
        ) AS is_priced_again_that_day,
        mart.utc(state_of.valid_from)::DATE AS from_date,
        mart.utc(state_of.last_seen_at)::DATE AS seen_date
    FROM state_of
    -- Missing only in a silence: whether it was gone is unknown.
    ANTI JOIN night.market_silence AS silence
        ON
            NOT state_of.is_offered
            AND silence.source = state_of.source
            AND silence.market = state_of.market
            AND silence.started_at = state_of.last_seen_at
            AND silence.sold_at < state_of.valid_from
    -- In a partly unreadable detail answer, a dearer product may represent the key.
    WHERE state_of.is_whole OR state_of.source = 'multi'
    WINDOW
        later AS (
            PARTITION BY state_of.source, state_of.property_id, state_of.offer_key
            ORDER BY state_of.valid_from ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ),
        whole AS (
            PARTITION BY state_of.source, state_of.property_id, state_of.offer_key
            ORDER BY state_of.valid_from ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        )
),

answered_on AS (
    SELECT DISTINCT
        CASE count_of.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
        count_of.market,
        count_of.product_type,
        count_of.lead_days,
        count_of.snapshot_date
    FROM state.cell_count AS count_of
    WHERE count_of.planned > count_of.rejected + count_of.failed + count_of.not_swept
),

-- One row per offer and day on which it was on sale; within an interval its total was seen again until it ended.
dated AS (
    SELECT
        path.*,
        unnest(
            range(date_diff('day', path.from_date, path.seen_date) + (NOT path.is_priced_again_that_day)::INTEGER)
        ) AS days_in,
        path.from_date + days_in::INTEGER AS on_date,
        on_date < mart.utc(path.answered_last_at)::DATE AS is_answered_later,
        on_date < mart.utc(path.priced_last_at)::DATE AS is_priced_later,
        CASE
            WHEN on_date < path.seen_date THEN least(path.own_total, path.lowest_later)
            ELSE path.lowest_later
        END AS lowest
    FROM path
    WHERE path.own_total > 0
),

seen AS (
    SELECT dated.*
    FROM dated
    LEFT JOIN answered_on
        ON
            answered_on.source = dated.source
            AND answered_on.market = dated.market
            AND answered_on.product_type = dated.product_type
            AND answered_on.lead_days = date_diff('day', dated.on_date, dated.check_in)
            AND answered_on.snapshot_date = dated.on_date
    -- The first and the last day of an interval were answered.
    WHERE dated.on_date IN (dated.from_date, dated.seen_date) OR answered_on.market IS NOT NULL
)

SELECT
    any_value(sweep.sweep_id) AS sweep_id,
    seen.source,
    seen.market,
    seen.product_type,
    date_diff('day', seen.on_date, seen.check_in) AS lead_days,
    count(*) AS offers,
    count(*) FILTER (WHERE seen.is_answered_later) AS answered_later,
    count(*) FILTER (WHERE seen.is_answered_later AND NOT seen.is_offered_last) AS gone_later,
    count(*) FILTER (WHERE seen.is_priced_later) AS comparable,
    count(*) FILTER (WHERE seen.is_priced_later AND seen.lowest < seen.own_total) AS cheaper_later,
    count(*) FILTER (WHERE seen.is_priced_later AND seen.last_total > seen.own_total) AS dearer_last,
    -- Sums of floats differ by the order of the rows; sums of whole billionths do not.
    coalesce(
        sum(round(ln(seen.lowest::DOUBLE / seen.own_total::DOUBLE) * 1e9)::HUGEINT)
        FILTER (WHERE seen.is_priced_later), 0
    ) / 1e9 AS ln_lowest,
    coalesce(
        sum(round(ln(seen.last_total::DOUBLE / seen.own_total::DOUBLE) * 1e9)::HUGEINT)
        FILTER (WHERE seen.is_priced_later), 0
    ) / 1e9 AS ln_last
FROM seen
CROSS JOIN night.sweep AS sweep
GROUP BY seen.source, seen.market, seen.product_type, lead_days
