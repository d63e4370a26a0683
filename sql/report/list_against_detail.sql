-- One row per market, product type and time between: list totals compared with detail totals of the same offer key.
-- time_between: Range of time between the list search and the detail search, whichever came first.
-- listed_and_looked_at: Number of offer keys in both a list and a detail answer.
-- comparable: Number of offers with both totals, which are in one currency by the offer key.
-- equal: Number of offers whose totals are the same to the cent.
-- detail_dearer: Number of offers whose detail total is higher.
-- detail_cheaper: Number of offers whose detail total is lower.
-- equal_share: equal / comparable.
-- median_gap_pct: Median of 100 x (detail total / list total - 1) over those that differ; NULL: none does.
SELECT
    told.market,
    told.product_type,
    CASE
        WHEN abs(told.list_to_detail_seconds) < 3600 THEN 'under 1 h'
        WHEN abs(told.list_to_detail_seconds) < 6 * 3600 THEN '1 to 6 h'
        WHEN abs(told.list_to_detail_seconds) < 24 * 3600 THEN '6 to 24 h'
        ELSE 'over 24 h'
    END AS time_between,
    count(*) AS listed_and_looked_at,
    count(told.detail_above_list) AS comparable,
    count(*) FILTER (WHERE told.detail_above_list = 0) AS equal,
    count(*) FILTER (WHERE told.detail_above_list > 0) AS detail_dearer,
    count(*) FILTER (WHERE told.detail_above_list < 0) AS detail_cheaper,
    equal::DOUBLE / nullif(comparable, 0) AS equal_share,
    round(
        median(100 * told.detail_above_list::DOUBLE / nullif(told.list_total, 0)::DOUBLE) FILTER (
            WHERE told.detail_above_list <> 0
        ), 6
    ) AS median_gap_pct
FROM mart.offer_truth AS told
WHERE told.list_at IS NOT NULL AND told.detail_at IS NOT NULL
GROUP BY told.market, told.product_type, time_between
