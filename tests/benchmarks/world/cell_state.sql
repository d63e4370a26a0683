-- One row per cell whose stay lies ahead, as publication leaves it in the state.
SELECT
    cell_key,
    operation,
    property_id,
    market,
    product_type,
    check_in,
    nights,
    party,
    currency_asked,
    last(status ORDER BY night) AS status,
    last(code ORDER BY night) AS code,
    last(searched_at ORDER BY night) AS searched_at,
    last(offers ORDER BY night) AS offers,
    last(sweep_id ORDER BY night) AS sweep_id,
    last(search_id ORDER BY night) AS search_id,
    started_at(max(night)) AS asked_at,
    last(searched_at ORDER BY night) FILTER (WHERE status IN ('offered', 'no_offer', 'absent')) AS answered_at,
    last(status ORDER BY night) FILTER (WHERE status IN ('offered', 'no_offer', 'absent')) AS answered_status
FROM cell_told
WHERE night < getvariable('known_nights') AND check_in > day_of(getvariable('known_nights') - 1)
GROUP BY ALL
