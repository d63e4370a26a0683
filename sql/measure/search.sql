-- One row per market, and one for all of them: what its answers are like beside those of the last published night.
-- A share of few searches is given so much room for chance that it cannot fail: the sum of all has more of them.
-- Answers about one property, or without offers, may be alike every night: that parts of searches repeat says nothing.
SELECT
    search.market,
    count(before.body_sha256) / nullif(count(search.body_sha256) FILTER (WHERE search.search_id % 256 = 1), 0)
        AS repeated_body_share,
    count(search.body_sha256) FILTER (WHERE search.search_id % 256 = 1) AS repeated_body_share__of,
    count(*) FILTER (WHERE search.outcome = 'failed') / count(*) AS failed_search_share,
    count(*) AS failed_search_share__of
FROM sweep_files.search AS search
LEFT JOIN (
    SELECT DISTINCT answered.body_sha256
    FROM before_files.search AS answered
    WHERE answered.outcome = 'answered'
) AS before
    ON
        before.body_sha256 = search.body_sha256
        AND search.outcome = 'answered'
        AND search.search_id % 256 = 1
GROUP BY GROUPING SETS ((search.market), ())
