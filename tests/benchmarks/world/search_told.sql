-- One row per search that was sent on the night `told_night`: a row of the lake's table `search`.
SELECT
    search.night,
    sweep_id(search.night) AS sweep_id,
    search.search_id,
    search.operation,
    search.market,
    search.product_type,
    search.check_in,
    search.nights,
    search.party,
    search.currency AS currency_asked,
    counted.cells AS properties,
    search.outcome,
    CASE search.outcome WHEN 'rejected' THEN 400 WHEN 'failed' THEN 500 ELSE 200 END AS http_status,
    CASE search.outcome WHEN 'rejected' THEN '1027' WHEN 'failed' THEN '500' END AS codes,
    CASE search.outcome WHEN 'failed' THEN 'server error' END AS failure,
    CASE search.outcome WHEN 'failed' THEN 4 ELSE 1 END AS attempts,
    search.searched_at AS started_at,
    search.searched_at + to_milliseconds(80) AS ended_at,
    80 AS latency_ms,
    counted.offers * 43 + 200 AS wire_bytes,
    counted.offers * 440 + 500 AS body_bytes,
    md5(search.search_id || '/' || search.night) || md5('body' || search.search_id) AS body_sha256,
    counted.offers,
    0 AS rejects,
    'raw/' || sweep_id(search.night) || '/' || search.operation || '-' || search.market || '-'
    || format('{:06d}', search.search_no // 32) || '.parquet#' || search.search_no % 32 AS raw_address
FROM search
INNER JOIN (
    SELECT
        search_id,
        count(*) AS cells,
        sum(offers) AS offers
    FROM cells
    GROUP BY search_id
) AS counted ON counted.search_id = search.search_id
WHERE search.night = getvariable('told_night') AND search.outcome <> 'not_swept'
