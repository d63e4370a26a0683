-- One row per new disparity that rests on two prices alone and says nothing new, so that it is not reported.
-- If the reference market is found to deviate at other offers of the property, or at clearly more than half of its
-- properties that can show it, a finding about two prices that differ as much repeats that: unless as many offers of
-- the property show that the finding's own market deviates as much.
WITH told AS (
    SELECT compared.*
    FROM night.disparity_found AS compared
    ANTI JOIN night.disparity_undecided AS undecided ON undecided.subject_key = compared.subject_key
    WHERE NOT compared.is_lone
),

-- What more than two prices say about a market: tonight, and what is open and was not put right tonight.
shown AS (
    SELECT
        told.property_id,
        told.product_type,
        told.market,
        told.side,
        told.level,
        told.is_converted
    FROM told

    UNION ALL

    SELECT
        before.property_id,
        before.product_type,
        before.market,
        sign(before.size_pct) AS side,
        1 + before.size_pct / 100 AS level,
        before.fx IS NOT NULL AS is_converted
    FROM state.flag_open AS before
    CROSS JOIN night.sweep AS sweep
    ANTI JOIN told ON told.subject_key = before.subject_key
    ANTI JOIN night.flag_corrected AS corrected ON corrected.flag_id = before.flag_id
    WHERE
        before.rule = 'market_disparity'
        AND len(before.evidence) <> 2
        AND before.check_in > sweep.snapshot_date
),

of_reference AS (
    SELECT shown.*
    FROM shown
    INNER JOIN mart.reference_market AS chosen ON chosen.reference_market = shown.market
),

-- Of pairs without a third price, how many other offers of the property show which market deviates as much.
weighed AS (
    SELECT
        lone.subject_key,
        count(*) FILTER (WHERE shown.market <> lone.market) AS of_reference,
        count(*) FILTER (WHERE shown.market = lone.market) AS of_market
    FROM night.disparity_found AS lone
    CROSS JOIN ref.analysis AS analysis
    INNER JOIN mart.reference_market AS chosen ON TRUE
    INNER JOIN shown
        ON
            shown.property_id = lone.property_id
            AND shown.product_type = lone.product_type
            AND shown.market IN (lone.market, chosen.reference_market)
    WHERE
        lone.is_lone
        AND shown.side = CASE shown.market WHEN lone.market THEN lone.side ELSE -lone.side END
        AND 100
        * abs(lone.level * CASE shown.market WHEN lone.market THEN 1 / shown.level ELSE shown.level END - 1)
        <= analysis.disparity_pct
        + analysis.tolerance_pct
        + CASE WHEN lone.is_converted OR shown.is_converted THEN analysis.reference_rate_pct ELSE 0 END
    GROUP BY lone.subject_key
),

in_property AS (
    SELECT
        of_reference.property_id,
        of_reference.side,
        median(of_reference.level) AS level,
        bool_or(of_reference.is_converted) AS is_converted
    FROM of_reference
    GROUP BY of_reference.property_id, of_reference.side
),

in_market AS (
    SELECT
        in_property.side,
        count(*) AS properties,
        median(in_property.level) AS level,
        bool_or(in_property.is_converted) AS is_converted
    FROM in_property
    GROUP BY in_property.side
),

-- Pairs without a third price that differ as much as the reference market does at other properties.
as_elsewhere AS (
    SELECT
        lone.subject_key,
        lone.property_id,
        in_market.side,
        in_market.properties
    FROM night.disparity_found AS lone
    INNER JOIN in_market
        ON
            in_market.side = -lone.side
            AND in_market.properties >= 5
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN weighed ON weighed.subject_key = lone.subject_key
    WHERE
        coalesce(weighed.of_reference > weighed.of_market, TRUE)
        AND lone.is_lone
        AND 100 * abs(lone.level * in_market.level - 1) <= analysis.disparity_pct + analysis.tolerance_pct
        + CASE WHEN lone.is_converted OR in_market.is_converted THEN analysis.reference_rate_pct ELSE 0 END
),

-- Number of their properties that show neither that the reference market deviates nor that it does not.
shown_by_none AS (
    SELECT
        as_elsewhere.side,
        count(DISTINCT as_elsewhere.property_id) AS properties
    FROM as_elsewhere
    ANTI JOIN in_property
        ON
            in_property.property_id = as_elsewhere.property_id
            AND in_property.side = as_elsewhere.side
    GROUP BY as_elsewhere.side
),

-- Pairs without a third price that say nothing new.
known AS (
    SELECT weighed.subject_key
    FROM weighed
    WHERE weighed.of_reference > weighed.of_market

    UNION

    SELECT as_elsewhere.subject_key
    FROM as_elsewhere
    INNER JOIN mart.reference_market AS chosen ON TRUE
    INNER JOIN mart.market_on_sale AS sale ON sale.market = chosen.reference_market
    LEFT JOIN shown_by_none ON shown_by_none.side = as_elsewhere.side
    WHERE
        mart.share_bound(
            as_elsewhere.properties,
            greatest(as_elsewhere.properties, sale.properties - coalesce(shown_by_none.properties, 0)),
            -1
        ) > 0.5
)

SELECT found.subject_key
FROM night.disparity_found AS found
SEMI JOIN known ON known.subject_key = found.subject_key
WHERE found.is_new
