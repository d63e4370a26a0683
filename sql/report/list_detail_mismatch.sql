-- One row per offer key whose list and detail totals in one sweep differ by more than the tolerance.
-- size_pct: amount in percent of list_total; always > 0.
-- amount: Absolute difference of list_total and detail_total, in currency; always > 0.
-- list_total: Total of the list answer, in currency.
-- detail_total: Total of the cheapest product of the detail answer for the same room, board and policy, in currency.
-- list_to_detail_seconds: Seconds from the list search to the detail search; < 0: the list is later; NULL: unknown.
WITH pair AS MATERIALIZED (
    SELECT
        told.property_id,
        told.offer_key,
        told.market,
        told.product_type,
        told.check_in,
        told.nights,
        told.party,
        told.currency,
        told.seen_sweep_id,
        told.seen_search_id AS list_search_id,
        told.seen_offer_no AS list_offer_no,
        detail.seen_search_id AS detail_search_id,
        detail.seen_offer_no AS detail_offer_no,
        told.total AS list_total,
        detail.total AS detail_total,
        abs(detail.total - told.total) AS amount,
        100 * amount::DOUBLE / told.total::DOUBLE AS size_pct
    FROM mart.offer_latest AS detail
    INNER JOIN mart.offer_latest AS told
        ON
            told.source = 'multi'
            AND told.property_id = detail.property_id
            AND told.offer_key = detail.offer_key
            AND told.seen_sweep_id = detail.seen_sweep_id
    WHERE
        detail.source = 'detail'
        AND detail.currency IS NOT NULL
        AND told.total > 0
        AND detail.total <> told.total
        -- In a partly unreadable detail answer, a dearer product may represent the key.
        AND detail.is_whole
),

-- Read once for both sides: a lake of many nights has many files of searches.
searched AS MATERIALIZED (
    SELECT
        search.sweep_id,
        search.search_id,
        search.started_at,
        search.sent_property_id
    FROM lake.search AS search
    SEMI JOIN pair ON pair.seen_sweep_id = search.sweep_id
)

SELECT
    'list_detail_mismatch' AS rule,
    2 AS rule_version,
    mart.subject_key(rule, pair.offer_key) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(pair.size_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    pair.size_pct,
    pair.amount::DECIMAL(18, 4) AS amount,
    'multi' AS source,
    pair.property_id,
    pair.market,
    pair.product_type,
    pair.check_in,
    pair.nights,
    pair.party,
    pair.currency,
    format(
        'The list says {:,.2f} {}, the detail of the same sweep {:,.2f}: {} by {:,.2f}%.',
        pair.list_total,
        pair.currency,
        pair.detail_total,
        CASE WHEN pair.detail_total > pair.list_total THEN 'dearer' ELSE 'cheaper' END,
        pair.size_pct
    ) AS finding,
    [
        mart.observation(
            'list',
            'multi',
            pair.property_id,
            pair.offer_key,
            pair.seen_sweep_id,
            pair.list_search_id,
            pair.list_offer_no
        ),
        mart.observation(
            'detail',
            'detail',
            pair.property_id,
            pair.offer_key,
            pair.seen_sweep_id,
            pair.detail_search_id,
            pair.detail_offer_no
        )
    ] AS evidence,
    mart.conversion(NULL, NULL, NULL, NULL) AS fx,
    pair.offer_key,
    pair.list_total,
    pair.detail_total,
    date_diff('second', list_search.started_at, detail_search.started_at) AS list_to_detail_seconds
FROM pair
CROSS JOIN ref.analysis AS analysis
LEFT JOIN searched AS list_search
    ON list_search.sweep_id = pair.seen_sweep_id AND list_search.search_id = pair.list_search_id
LEFT JOIN searched AS detail_search
    ON detail_search.sweep_id = pair.seen_sweep_id AND detail_search.search_id = pair.detail_search_id
WHERE
    pair.size_pct > analysis.tolerance_pct
    -- The detail answer of a mapped branded property describes its opaque offer, which has a different price.
    AND coalesce(detail_search.sent_property_id, pair.property_id) = pair.property_id
