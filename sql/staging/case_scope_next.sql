-- One row per market, or the supplier, that has ever been a case of a rule, as it stands after this sweep.
-- A market is one case if at least five of its properties show a rule in the same direction, and these are clearly more
-- than half of its properties; or clearly more than a quarter of them, and more than in the other markets together. The
-- cause is then the market's, and one call is enough. "Clearly": by the bounds of Wilson's 95% interval.
-- If prices of markets deviate by a common size, fewer properties are enough: at least five, and four fifths of those
-- with the finding, within disparity_pct and tolerance_pct of their median, and clearly more than in the other markets
-- together, or than in those of them without a common size: several may deviate from the reference market at once.
-- The supplier is one case if more than half of the markets, and at least three, are one. A rule that compares markets
-- has none: each market that deviates does so by its own size, and is put right for itself.
-- Opening a case of a market takes more than keeping it; otherwise a share close to the bound would open and close it
-- every few days. An open one stays while more than half of the properties show the rule; or more than a quarter, and a
-- larger share than in the other markets; or three of a common size. It closes on the second day without that, and at
-- once if only one or two properties were found to show it tonight: the findings that are open without an answer may be
-- of properties that are as they should be, like the others.
WITH flagged AS (
    SELECT
        flag.rule,
        flag.market,
        flag.property_id,
        flag.size_pct,
        flag.last_flagged_sweep_id = sweep.sweep_id AS is_found,
        flag.fx IS NOT NULL AS is_converted,
        CASE WHEN flag.rule = 'fx_markup' THEN flag.fx.from_currency END AS base_currency,
        CASE WHEN flag.rule = 'fx_markup' THEN flag.fx.to_currency END AS currency
    FROM state.flag_open AS flag
    CROSS JOIN night.sweep AS sweep
    WHERE flag.market IS NOT NULL
),

in_property AS (
    SELECT
        flagged.rule,
        flagged.market,
        flagged.property_id,
        median(flagged.size_pct) AS size_pct,
        bool_or(flagged.is_converted) AS is_converted
    FROM flagged
    WHERE
        flagged.size_pct IS NOT NULL
        -- What a market adds to its prices has a common size; other findings may share a size by chance.
        AND mart.compares_markets(flagged.rule)
    GROUP BY flagged.rule, flagged.market, flagged.property_id
),

-- How many properties of a market deviate by a common size, in the direction in which most do.
of_one_size AS (
    SELECT
        sized.rule,
        sized.market,
        count(*) FILTER (
            WHERE abs(sized.size_pct - sized.median_pct)
            <= (1 + sized.median_pct / 100) * (
                analysis.disparity_pct + analysis.tolerance_pct
                -- Rates differ by the currency that a property is priced in.
                + CASE WHEN sized.is_converted THEN analysis.reference_rate_pct ELSE 0 END
            )
        ) AS agreed
    FROM (
        SELECT
            in_property.*,
            median(in_property.size_pct) OVER (PARTITION BY in_property.rule, in_property.market) AS median_pct
        FROM in_property
    ) AS sized
    CROSS JOIN ref.analysis AS analysis
    GROUP BY sized.rule, sized.market
),

in_market AS (
    SELECT
        flagged.rule,
        flagged.market,
        flagged.base_currency,
        flagged.currency,
        count(DISTINCT flagged.property_id) FILTER (WHERE flagged.size_pct >= 0) AS higher,
        count(DISTINCT flagged.property_id) FILTER (WHERE flagged.size_pct < 0 OR flagged.size_pct IS NULL) AS lower,
        count(DISTINCT flagged.property_id) FILTER (WHERE flagged.is_found) AS found,
        greatest(higher, lower, any_value(sale.properties)) AS judged
    FROM flagged
    LEFT JOIN mart.market_on_sale AS sale ON sale.market = flagged.market
    GROUP BY flagged.rule, flagged.market, flagged.base_currency, flagged.currency
),

alike_in_market AS (
    SELECT
        in_market.*,
        greatest(in_market.higher, in_market.lower) AS alike,
        -- Findings without a size, or of many sizes, have no common size.
        CASE WHEN 5 * of_one_size.agreed >= 4 * alike THEN of_one_size.agreed ELSE 0 END AS agreed,
        agreed >= 5 AS is_of_one_size
    FROM in_market
    LEFT JOIN of_one_size ON of_one_size.rule = in_market.rule AND of_one_size.market = in_market.market
),

beside_others AS (
    SELECT
        alike.rule,
        alike.market,
        alike.base_currency,
        alike.currency,
        alike.judged,
        alike.found,
        alike.alike,
        alike.agreed,
        mart.share_bound(alike.alike, alike.judged, -1) AS surely,
        -- How many properties of the other markets move in its direction, and of those without a common size.
        CASE
            WHEN alike.higher >= alike.lower THEN sum(alike.higher) OVER of_rule - alike.higher
            ELSE sum(alike.lower) OVER of_rule - alike.lower
        END AS alike_elsewhere,
        on_sale.properties - alike.judged AS elsewhere,
        alike_elsewhere - coalesce(
            CASE
                WHEN alike.higher >= alike.lower
                    THEN sum(alike.higher) FILTER (WHERE alike.is_of_one_size) OVER of_rule
                ELSE sum(alike.lower) FILTER (WHERE alike.is_of_one_size) OVER of_rule
            END,
            0
        ) + CASE WHEN alike.is_of_one_size THEN alike.alike ELSE 0 END AS alike_beside,
        elsewhere - coalesce(sum(alike.judged) FILTER (WHERE alike.is_of_one_size) OVER of_rule, 0)
        + CASE WHEN alike.is_of_one_size THEN alike.judged ELSE 0 END AS beside
    FROM alike_in_market AS alike
    CROSS JOIN (SELECT sum(sale.properties) AS properties FROM mart.market_on_sale AS sale) AS on_sale
    WINDOW of_rule AS (PARTITION BY alike.rule, alike.base_currency, alike.currency)
),

market_met AS (
    SELECT
        beside_others.rule,
        beside_others.market,
        beside_others.base_currency,
        beside_others.currency
    FROM beside_others
    LEFT JOIN state.case_scope AS before
        ON
            before.rule = beside_others.rule
            AND before.market = beside_others.market
            AND before.base_currency IS NOT DISTINCT FROM beside_others.base_currency
            AND before.currency IS NOT DISTINCT FROM beside_others.currency
    WHERE
        -- A mark-up always concerns a market.
        beside_others.rule <> 'fx_markup'
        AND CASE
            WHEN before.rule IS NOT NULL AND before.ended_at IS NULL
                THEN
                    2 * beside_others.alike > beside_others.judged
                    OR (
                        (4 * beside_others.alike > beside_others.judged OR beside_others.agreed >= 3)
                        AND (
                            beside_others.alike * greatest(beside_others.elsewhere, beside_others.alike_elsewhere)
                            > beside_others.alike_elsewhere * beside_others.judged
                            OR beside_others.alike * greatest(beside_others.beside, beside_others.alike_beside)
                            > beside_others.alike_beside * beside_others.judged
                        )
                    )
            ELSE
                beside_others.alike >= 5
                AND (
                    beside_others.surely > 0.5
                    OR (
                        (beside_others.surely > 0.25 OR beside_others.agreed >= 5)
                        AND beside_others.surely > least(
                            mart.share_bound(
                                beside_others.alike_elsewhere,
                                greatest(beside_others.elsewhere, beside_others.alike_elsewhere),
                                1
                            ),
                            mart.share_bound(
                                beside_others.alike_beside,
                                greatest(beside_others.beside, beside_others.alike_beside),
                                1
                            )
                        )
                    )
                )
        END
),

market_stands AS (
    SELECT * FROM market_met
    UNION
    SELECT
        before.rule,
        before.market,
        before.base_currency,
        before.currency
    FROM state.case_scope AS before
    CROSS JOIN night.sweep AS sweep
    WHERE
        before.market IS NOT NULL
        AND before.ended_at IS NULL
        AND coalesce(before.below_since >= sweep.snapshot_date, TRUE)
    UNION
    SELECT
        in_market.rule,
        in_market.market,
        in_market.base_currency,
        in_market.currency
    FROM in_market
    WHERE in_market.rule = 'fx_markup'
),

met AS (
    SELECT * FROM market_met
    UNION ALL
    SELECT
        market_stands.rule,
        NULL AS market,
        market_stands.base_currency,
        market_stands.currency
    FROM market_stands
    WHERE NOT mart.compares_markets(market_stands.rule)
    GROUP BY market_stands.rule, market_stands.base_currency, market_stands.currency
    HAVING count(*) >= 3 AND 2 * count(*) > (SELECT count(*) FROM mart.market_on_sale)
)

SELECT
    coalesce(met.rule, before.rule) AS rule,
    CASE WHEN met.rule IS NULL THEN before.market ELSE met.market END AS market,
    CASE WHEN met.rule IS NULL THEN before.base_currency ELSE met.base_currency END AS base_currency,
    CASE WHEN met.rule IS NULL THEN before.currency ELSE met.currency END AS currency,
    CASE
        WHEN before.rule IS NULL OR (met.rule IS NOT NULL AND before.ended_at IS NOT NULL) THEN sweep.started_at
        ELSE before.opened_at
    END AS opened_at,
    CASE WHEN met.rule IS NULL THEN before.last_met_at ELSE sweep.started_at END AS last_met_at,
    CASE WHEN met.rule IS NULL THEN coalesce(before.below_since, sweep.snapshot_date) END AS below_since,
    CASE
        WHEN met.rule IS NOT NULL THEN NULL
        WHEN before.ended_at IS NOT NULL THEN before.ended_at
        WHEN before.below_since < sweep.snapshot_date THEN sweep.started_at
        -- With one or two properties left, there is no reason to wait: they are cases of their own.
        WHEN left_over.found < 3 THEN sweep.started_at
    END AS ended_at
FROM met
FULL JOIN state.case_scope AS before
    ON
        before.rule = met.rule
        AND before.market IS NOT DISTINCT FROM met.market
        AND before.base_currency IS NOT DISTINCT FROM met.base_currency
        AND before.currency IS NOT DISTINCT FROM met.currency
CROSS JOIN night.sweep AS sweep
LEFT JOIN beside_others AS left_over
    ON
        left_over.rule = before.rule
        AND left_over.market = before.market
        AND left_over.base_currency IS NOT DISTINCT FROM before.base_currency
        AND left_over.currency IS NOT DISTINCT FROM before.currency
