-- One row per market, and one for all of them: its answers compared with those of the last published night.
-- With few searches, chance explains any share, so a single market cannot fail, but all of them together can.
-- An answer without an offer is the same every night, so it does not count as a repeated one.
SELECT
    search.market,
    count(before.body_sha256) / nullif(count(search.body_sha256) FILTER (WHERE search.offers > 0), 0)
        AS repeated_body_share,
    count(search.body_sha256) FILTER (WHERE search.offers > 0) AS repeated_body_share__of,
    count(*) FILTER (WHERE search.outcome = 'failed') / count(*) AS failed_search_share,
    count(*) AS failed_search_share__of
FROM sweep_files.search AS search
LEFT JOIN (
    SELECT DISTINCT answered.body_sha256
    FROM before_files.search AS answered
    WHERE answered.outcome = 'answered'
) AS before ON before.body_sha256 = search.body_sha256 AND search.offers > 0
GROUP BY GROUPING SETS ((search.market), ())
