-- One row per source, market and product type: prices before promotions of offers on sale, checked against history.
-- planned: Number of requested cells.
-- answered: Number of requested cells whose latest request was answered.
-- promoted: Number of offers on sale below a price before promotions, with room, board and currency.
-- comparable: Number of offers with enough history for a verdict: the sum of the next three columns.
-- honest: Number with a price before promotions not above the lowest total in reference_days before the promotion.
-- above_lowest: Number whose price before promotions is above that lowest total, but was charged at some time.
-- never_charged: Number whose price before promotions is above all totals ever seen.
-- not_enough_history: Number without a verdict: promoted - comparable.
-- evergreen: Number of offers never seen without a promotion in reference_days or more.
-- median_history_days: Median length of the promoted offers' history, in days.
-- mean_promoted_share_pct: Mean of promoted_share_pct of mart.reference_price, in percent.
-- median_promotion_days: Median number of days since the running promotion was first seen.
WITH held AS (
    SELECT
        reference.source,
        reference.market,
        reference.product_type,
        count(*) AS promoted,
        count(*) FILTER (WHERE reference.reference_verdict <> 'not_enough_history') AS comparable,
        count(*) FILTER (WHERE reference.reference_verdict = 'honest') AS honest,
        count(*) FILTER (WHERE reference.reference_verdict = 'above_lowest') AS above_lowest,
        count(*) FILTER (WHERE reference.reference_verdict = 'never_charged') AS never_charged,
        count(*) FILTER (WHERE reference.reference_verdict = 'not_enough_history') AS not_enough_history,
        count(*) FILTER (
            WHERE
            reference.plain_seen_at IS NULL
            AND reference.history_days >= analysis.reference_days
            AND reference.longest_unseen_days < analysis.reference_days
        ) AS evergreen,
        median(reference.history_days) AS median_history_days,
        -- Decimals: the last bit of a sum of fractions depends on the order of its rows.
        avg(reference.promoted_share_pct::DECIMAL(38, 9)) AS mean_promoted_share_pct,
        median(
            date_diff('day', mart.utc(reference.began_at), mart.utc(reference.last_seen_at))
        ) AS median_promotion_days
    FROM mart.reference_price AS reference
    CROSS JOIN ref.analysis AS analysis
    GROUP BY reference.source, reference.market, reference.product_type
)

SELECT
    cell.source,
    cell.market,
    cell.product_type,
    cell.planned,
    cell.answered,
    coalesce(held.promoted, 0) AS promoted,
    coalesce(held.comparable, 0) AS comparable,
    coalesce(held.honest, 0) AS honest,
    coalesce(held.above_lowest, 0) AS above_lowest,
    coalesce(held.never_charged, 0) AS never_charged,
    coalesce(held.not_enough_history, 0) AS not_enough_history,
    coalesce(held.evergreen, 0) AS evergreen,
    held.median_history_days,
    held.mean_promoted_share_pct,
    held.median_promotion_days
FROM mart.market_coverage AS cell
LEFT JOIN held
    ON
        held.source = cell.source
        AND held.market = cell.market
        AND held.product_type = cell.product_type
