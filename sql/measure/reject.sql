-- One row per market: how much of its answers could not be read.
SELECT
    search.market,
    sum(search.rejects) / nullif(sum(search.offers) + sum(search.rejects), 0) AS unread_share,
    sum(search.offers) + sum(search.rejects) AS unread_share__of
FROM sweep_files.search AS search
GROUP BY search.market
