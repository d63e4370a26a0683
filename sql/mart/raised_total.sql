-- One row per interval of mart.promoted_interval: its total at the level that its market has reached since.
-- raised_total: Total after the largest rise that the market's movement since valid_from explains, in currency.
-- raised_before: The same since last_seen_at, up to the market's highest level, in currency; NULL: not is_before.
-- moved: Logarithm of the change of the market's prices since valid_from; > 0: risen.
-- moved_since_seen: The same since last_seen_at.
-- risen_since_seen: Share of the market's prices that rose since last_seen_at, net of falls, at most 1; NULL: unknown.
-- How the market's prices have moved: mart.market_movement.
-- An offer may follow its market within a week: up to what it was charged at without a promotion.
WITH moved AS MATERIALIZED (
    FROM mart.market_movement
),

-- The rises that each explanation of mart.market_movement gives, as logarithms.
explained AS (
    SELECT
        each.*,
        coalesce((now.risen - at_first.risen)::DOUBLE, 0) AS by_median,
        coalesce(mart.rise_between(at_first.spread, now.spread), 0) AS by_mean,
        coalesce(mart.rise_between(at_first.spread_before, now.spread), 0) AS by_mean_before,
        coalesce((at_last.highest_since - at_last.risen)::DOUBLE, 0) AS last_by_median,
        coalesce(mart.rise_between(at_last.spread, at_last.spread_at_highest), 0) AS last_by_mean,
        coalesce(
            CASE
                WHEN at_first.started_at > at_last.spread_before.at
                    THEN mart.rise_between(at_first.spread, at_last.spread_at_highest)
                ELSE mart.rise_between(at_last.spread_before, at_last.spread_at_highest)
            END,
            0
        ) AS last_by_mean_before,
        mart.change_between(
            at_first.spread, now.spread, now.risen - at_first.risen, now.so_far - at_first.so_far
        ) AS moved,
        mart.change_between(
            at_last.spread, now.spread, now.risen - at_last.risen, now.so_far - at_last.so_far
        ) AS moved_since_seen,
        -- Not least(…, 1), which is 1 where nothing is known.
        CASE
            WHEN now.spread.share - at_last.spread.share > 1 THEN 1
            ELSE now.spread.share - at_last.spread.share
        END AS risen_since_seen
    FROM mart.promoted_interval AS each
    LEFT JOIN moved AS at_first
        ON
            at_first.source = each.source
            AND at_first.market = each.market
            AND at_first.product_type = each.product_type
            AND at_first.currency IS NOT DISTINCT FROM each.currency
            AND at_first.started_at = each.valid_from
    LEFT JOIN moved AS at_last
        ON
            at_last.source = each.source
            AND at_last.market = each.market
            AND at_last.product_type = each.product_type
            AND at_last.currency IS NOT DISTINCT FROM each.currency
            AND at_last.started_at = each.last_seen_at
    LEFT JOIN moved AS now
        ON
            now.source = each.source
            AND now.market = each.market
            AND now.product_type = each.product_type
            AND now.currency IS NOT DISTINCT FROM each.currency
            AND now.started_at = each.latest_seen_at
)

SELECT
    explained.* EXCLUDE (
        by_median, by_mean, by_mean_before, last_by_median, last_by_mean, last_by_mean_before
    ),
    round(
        greatest(
            explained.total::DOUBLE * exp(explained.by_median),
            least(
                explained.total::DOUBLE * exp(explained.by_mean),
                -- One of the first to rise has had its share of what the market rises in the week after.
                explained.plain_before::DOUBLE * exp(explained.by_mean_before)
            )
        ),
        4
    ) AS raised_total,
    CASE
        WHEN explained.is_before
            THEN round(
                greatest(
                    explained.total::DOUBLE * exp(greatest(explained.last_by_median, explained.last_by_mean)),
                    -- One of the last to rise followed what the market rose in the week before.
                    least(explained.dearest_plain::DOUBLE, explained.total::DOUBLE * exp(explained.last_by_mean_before))
                ),
                4
            )
    END AS raised_before
FROM explained
