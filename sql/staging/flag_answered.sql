-- One row per open flag that tonight's findings do not confirm: what tonight's answers say about its evidence.
-- standing: Number of pieces of evidence whose stay lies ahead.
-- seen: Number of pieces of evidence that were answered, or are no longer asked for.
-- is_only_compared_gone: Only a price of another market that it was compared with is not on sale.
-- is_awaited: That price may still be back within silent_nights.
-- Findings about an entire property rest on answers without an offer: any answer about it counts.
WITH cell AS (
    SELECT
        cell.operation,
        cell.property_id,
        cell.market,
        cell.product_type,
        bool_or(cell.sweep_id = sweep.sweep_id AND mart.is_answered(cell.status)) AS is_seen,
        bool_and(requested.property_id IS NULL) AS is_no_longer_asked
    FROM state.cell AS cell
    CROSS JOIN night.sweep AS sweep
    LEFT JOIN mart.property_requested AS requested
        ON
            requested.property_id = cell.property_id
            AND requested.market = cell.market
    -- AL05 does not see that the condition below reads a field.
    SEMI JOIN night.flag_unconfirmed AS evidence -- noqa: AL05
        ON
            evidence.item.property_id = cell.property_id
            AND evidence.item.offer_key IS NULL
    GROUP BY cell.operation, cell.property_id, cell.market, cell.product_type
),

-- An offer whose stay has begun is no longer in the state.
state_of_item AS (
    SELECT
        evidence.flag_id,
        evidence.market AS flag_market,
        evidence.last_flagged_at,
        offer.market,
        offer.offer_key IS NOT NULL OR cell.property_id IS NOT NULL AS is_standing,
        coalesce(cell.is_seen, FALSE)
        OR (
            offer.seen_sweep_id = sweep.sweep_id
            -- Where a detail answer was not fully readable, the flagged product may be in the unread part.
            AND (offer.is_whole OR offer.source = 'multi')
        )
        OR NOT mart.is_on_sale(offer.doubted_since, sweep.started_at, analysis.unobserved_nights)
        OR coalesce(cell.is_no_longer_asked, FALSE) AS is_answered,
        NOT offer.is_offered
        OR (
            offer.unobserved_since IS NOT NULL
            AND NOT mart.is_on_sale(offer.doubted_since, sweep.started_at, analysis.unobserved_nights)
        ) AS is_off_sale,
        -- In doubt although no answer is missing: its cell is now requested in another currency, or its property not.
        offer.unobserved_since IS NULL
        AND (
            coalesce(cell.is_no_longer_asked, FALSE)
            OR NOT mart.is_on_sale(offer.doubted_since, sweep.started_at, analysis.unobserved_nights)
        ) AS is_replaced,
        silent.market IS NOT NULL AND NOT offer.is_offered AS is_silent,
        evidence.rule = 'market_disparity'
        AND evidence.item.role = 'reference'
        AND offer.market <> chosen.reference_market AS is_beside_a_former_reference
    FROM night.flag_unconfirmed AS evidence
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN mart.reference_market AS chosen
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN state.offer_open AS offer
        ON
            offer.source = evidence.item.source
            AND offer.property_id = evidence.item.property_id
            AND offer.offer_key = evidence.item.offer_key
    LEFT JOIN night.market_silent AS silent
        ON
            silent.market = offer.market
            AND silent.operation = CASE offer.source WHEN 'multi' THEN 'multi' ELSE 'single' END
    LEFT JOIN cell
        ON
            evidence.item.offer_key IS NULL
            AND cell.property_id = evidence.item.property_id
            AND cell.operation = CASE evidence.item.source WHEN 'multi' THEN 'multi' ELSE 'single' END
            AND cell.market = evidence.market
            AND cell.product_type = evidence.product_type
)

SELECT
    item.flag_id,
    count(*) FILTER (WHERE item.is_standing) AS standing,
    count(*) FILTER (WHERE item.is_answered) AS seen,
    coalesce(bool_or(item.is_off_sale), FALSE) AS is_gone,
    coalesce(bool_or(item.is_replaced), FALSE) AS is_not_asked,
    coalesce(bool_or(item.is_silent), FALSE) AS is_of_silent_market,
    coalesce(bool_or(item.is_beside_a_former_reference), FALSE) AS is_beside_a_former_reference,
    coalesce(bool_and(item.is_answered AND NOT item.is_off_sale), FALSE) AS is_all_on_sale,
    is_gone
    AND coalesce(bool_and(NOT item.is_off_sale) FILTER (WHERE item.market = item.flag_market), FALSE)
        AS is_only_compared_gone,
    is_only_compared_gone
    AND any_value(item.last_flagged_at)
    >= any_value(sweep.started_at) - to_hours(24 * any_value(analysis.silent_nights) + 12) AS is_awaited
FROM state_of_item AS item
CROSS JOIN night.sweep AS sweep
CROSS JOIN ref.analysis AS analysis
GROUP BY item.flag_id
