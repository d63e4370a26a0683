-- One row per search whose offers do not add up: received is not stored plus rejected.
SELECT
    coalesce(search.market, stored.market) AS market,
    NULL::BIGINT AS property_id,
    coalesce(search.search_id, stored.search_id) AS search_id,
    NULL::INTEGER AS offer_no,
    coalesce(search.offers, 0) || ' offers and ' || coalesce(search.rejects, 0) || ' rejects were read, '
    || coalesce(stored.offers, 0) || ' and ' || coalesce(stored.rejects, 0) || ' are stored' AS reason
FROM sweep_files.search AS search
FULL JOIN (
    SELECT
        rows.search_id,
        any_value(rows.market) AS market,
        sum(rows.offers) AS offers,
        sum(rows.rejects) AS rejects
    FROM (
        SELECT
            held.search_id,
            held.market,
            held.offers,
            0 AS rejects
        FROM audit.search_offers AS held
        UNION ALL
        SELECT
            reject.search_id,
            any_value(reject.market) AS market,
            0 AS offers,
            count(*) AS rejects
        FROM sweep_files.reject AS reject
        GROUP BY reject.search_id
    ) AS rows
    GROUP BY rows.search_id
) AS stored ON stored.search_id = search.search_id
WHERE
    coalesce(search.offers, 0) <> coalesce(stored.offers, 0)
    OR coalesce(search.rejects, 0) <> coalesce(stored.rejects, 0)
