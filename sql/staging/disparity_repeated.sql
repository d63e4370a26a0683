-- One row per new disparity that no third price decides and that says nothing new, so that it is not reported.
-- If the reference market is found to deviate as much at other offers of the property, or at clearly more than half of
-- its properties that can show it, such a finding repeats that: unless as many offers of the property show that the
-- finding's own market deviates as much. It also does if at least five properties of the reference market deviate by a
-- common size, as do four fifths of those that deviate, and fewer show that the finding's own market deviates as much:
-- the cause is then the reference market's.
WITH lone AS (
    SELECT compared.*
    FROM night.disparity_found AS compared
    WHERE compared.is_lone
),

told AS (
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
        AND mart.shows_which(before.evidence)
        AND before.check_in > sweep.snapshot_date
),

-- Of pairs that no third price decides, how many other offers of the property show which market deviates as much.
weighed AS (
    SELECT
        lone.subject_key,
        count(*) FILTER (WHERE shown.market <> lone.market) AS of_reference,
        count(*) FILTER (WHERE shown.market = lone.market) AS of_market
    FROM lone
    CROSS JOIN ref.analysis AS analysis
    INNER JOIN mart.reference_market AS chosen ON TRUE
    INNER JOIN shown
        ON
            shown.property_id = lone.property_id
            AND shown.product_type = lone.product_type
            AND shown.market IN (lone.market, chosen.reference_market)
    WHERE
        shown.side = CASE shown.market WHEN lone.market THEN lone.side ELSE -lone.side END
        AND 100
        * abs(lone.level * CASE shown.market WHEN lone.market THEN 1 / shown.level ELSE shown.level END - 1)
        <= analysis.disparity_pct
        + analysis.tolerance_pct
        + CASE WHEN lone.is_converted OR shown.is_converted THEN analysis.reference_rate_pct ELSE 0 END
    GROUP BY lone.subject_key
),

in_property AS (
    SELECT
        shown.market,
        shown.property_id,
        shown.side,
        median(shown.level) AS level,
        bool_or(shown.is_converted) AS is_converted
    FROM shown
    GROUP BY shown.market, shown.property_id, shown.side
),

-- How the reference market deviates, by direction.
of_reference AS (
    SELECT
        in_property.*,
        median(in_property.level) OVER of_side AS market_level,
        bool_or(in_property.is_converted) OVER of_side AS is_market_converted
    FROM in_property
    INNER JOIN mart.reference_market AS chosen ON chosen.reference_market = in_property.market
    WINDOW of_side AS (PARTITION BY in_property.side)
),

in_market AS (
    SELECT
        of_reference.side,
        count(*) AS properties,
        any_value(of_reference.market_level) AS level,
        any_value(of_reference.is_market_converted) AS is_converted,
        count(*) FILTER (
            WHERE 100 * abs(of_reference.level / of_reference.market_level - 1)
            <= analysis.disparity_pct
            + analysis.tolerance_pct
            + CASE WHEN of_reference.is_market_converted THEN analysis.reference_rate_pct ELSE 0 END
        ) AS agreed
    FROM of_reference
    CROSS JOIN ref.analysis AS analysis
    GROUP BY of_reference.side
),

-- Pairs that no third price decides and that differ as much as the reference market does at other properties.
as_elsewhere AS (
    SELECT
        lone.subject_key,
        lone.property_id,
        lone.market,
        lone.side AS side_found,
        lone.level AS level_found,
        lone.is_converted,
        in_market.side,
        in_market.properties,
        CASE WHEN 5 * in_market.agreed >= 4 * in_market.properties THEN in_market.agreed ELSE 0 END AS agreed
    FROM lone
    INNER JOIN in_market
        ON
            in_market.side = -lone.side
            AND in_market.properties >= 5
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN weighed ON weighed.subject_key = lone.subject_key
    WHERE
        coalesce(weighed.of_reference > weighed.of_market, TRUE)
        AND 100 * abs(lone.level * in_market.level - 1) <= analysis.disparity_pct + analysis.tolerance_pct
        + CASE WHEN lone.is_converted OR in_market.is_converted THEN analysis.reference_rate_pct ELSE 0 END
),

-- Number of their properties that show neither that the reference market deviates nor that it does not.
shown_by_none AS (
    SELECT
        as_elsewhere.side,
        count(DISTINCT as_elsewhere.property_id) AS properties
    FROM as_elsewhere
    ANTI JOIN of_reference
        ON
            of_reference.property_id = as_elsewhere.property_id
            AND of_reference.side = as_elsewhere.side
    GROUP BY as_elsewhere.side
),

-- Number of properties that show that the finding's own market deviates as much.
of_own_market AS (
    SELECT
        as_elsewhere.subject_key,
        count(*) AS properties
    FROM as_elsewhere
    INNER JOIN in_property
        ON
            in_property.market = as_elsewhere.market
            AND in_property.side = as_elsewhere.side_found
    CROSS JOIN ref.analysis AS analysis
    WHERE
        100 * abs(as_elsewhere.level_found / in_property.level - 1)
        <= analysis.disparity_pct
        + analysis.tolerance_pct
        + CASE WHEN as_elsewhere.is_converted OR in_property.is_converted THEN analysis.reference_rate_pct ELSE 0 END
    GROUP BY as_elsewhere.subject_key
),

-- Pairs that no third price decides and that say nothing new.
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
    LEFT JOIN of_own_market ON of_own_market.subject_key = as_elsewhere.subject_key
    WHERE
        mart.share_bound(
            as_elsewhere.properties,
            greatest(as_elsewhere.properties, sale.properties - coalesce(shown_by_none.properties, 0)),
            -1
        ) > 0.5
        OR (as_elsewhere.agreed >= 5 AND as_elsewhere.agreed > coalesce(of_own_market.properties, 0))
)

SELECT found.subject_key
FROM night.disparity_found AS found
SEMI JOIN known ON known.subject_key = found.subject_key
WHERE found.is_new
