-- One row per disparity found tonight, with the offer that it is compared with.
-- compared_key: Offer key of the middle price in its currency, or of the reference market's.
-- beside_key: Offer key of the middle price in its currency, if that is what it is compared with.
-- others: Offer keys of what it is compared with; of the reference market, all that deviate from it.
-- side: 1 if the price is above the others, -1 if it is below.
-- level: The price as a multiple of what it is compared with.
-- is_lone: Rests on two prices alone, or on more of which none shows which one deviates.
-- is_new: No open finding about the same offer has the same direction.
-- has_turned: An open finding about the same offer has the other direction.
SELECT
    found.subject_key,
    found.property_id,
    found.market,
    found.product_type,
    sign(found.size_pct) AS side,
    1 + found.size_pct / 100 AS level,
    found.fx IS NOT NULL AS is_converted,
    NOT mart.shows_which(found.evidence) AS is_lone,
    found.evidence[1].source AS source,
    list_distinct(list_transform(found.evidence, LAMBDA item: item['source'])) AS sources,
    list_filter(found.evidence, LAMBDA item: item['role'] = 'reference')[1].offer_key
        AS reference_key,
    found.subject_key
    = mart.subject_key('market_disparity', concat_ws('|', source, reference_key)) AS is_of_reference,
    CASE WHEN is_of_reference THEN reference_key ELSE found.evidence[1].offer_key END AS offer_key,
    CASE
        WHEN found.fx IS NULL AND NOT is_of_reference
            THEN list_filter(found.evidence, LAMBDA item: item['role'] = 'compared')[1].offer_key
    END AS beside_key,
    CASE
        WHEN is_of_reference THEN found.evidence[1].offer_key
        ELSE coalesce(beside_key, reference_key)
    END AS compared_key,
    CASE
        WHEN is_of_reference
            THEN
                list_transform(
                    list_filter(found.evidence, LAMBDA item: item['role'] = 'market'),
                    LAMBDA item: item['offer_key']
                )
        ELSE [compared_key]
    END AS others,
    coalesce(before.side_before <> side, FALSE) AS has_turned,
    before.subject_key IS NULL OR has_turned AS is_new
FROM night.found AS found
LEFT JOIN (
    SELECT
        flag.subject_key,
        sign(flag.size_pct) AS side_before
    FROM state.flag_open AS flag
    WHERE flag.rule = 'market_disparity'
) AS before
    ON before.subject_key = found.subject_key
WHERE found.rule = 'market_disparity'
