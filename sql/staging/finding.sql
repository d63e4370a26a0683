-- One row per finding of tonight about a stay that lies ahead.
-- A rate is the market's: if fewer than a third of its properties are at a late rate, their prices deviate for another
-- reason, and rates explain it by chance. A late rate that was found before stays while a sixth of them show it.
-- Where the reference market's currency is late, prices of other markets are off in the other direction: they are no
-- findings of their own, even at a property where few enough markets are off to leave it open which one is late.
-- Two prices alone do not show which deviates. If no third market agrees with one of them tonight, an open finding
-- about the other one stands; for a finding about the reference market, two others must agree with each other, and not
-- both be what open findings are about: that these two agree was known when they were found to deviate. A new finding
-- waits for a market that is silent tonight, or that has sold the offer until silent_nights ago: unless only the price
-- that it is about has changed since, or an open finding shows that it deviated in the other direction.
-- If the reference market is found to deviate at other offers of the property, or at clearly more than half of its
-- properties that can show it, a new finding about two prices that differ as much says nothing new: it is left out,
-- unless as many offers of the property show that the finding's own market deviates as much.
-- flag_id: Id of the flag, the same every night: the rule and the subject_key in hex; argument of `nightaudit explain`.
WITH late AS (
    SELECT
        found.market,
        found.fx.from_currency AS base_currency,
        found.fx.to_currency AS currency,
        count(DISTINCT found.property_id) AS properties,
        sign(median(found.size_pct)) AS side
    FROM night.found AS found
    WHERE found.rule = 'fx_markup' AND found.evidence[1].role = 'market'
    GROUP BY found.market, base_currency, found.fx.to_currency -- noqa: RF02
),

few AS (
    SELECT
        late.market,
        late.base_currency,
        late.currency
    FROM late
    INNER JOIN mart.market_on_sale AS sale ON sale.market = late.market
    LEFT JOIN state.flag_open AS before
        ON
            before.rule = 'fx_markup'
            AND before.evidence[1].role = 'market'
            AND before.market = late.market
            AND before.fx.from_currency = late.base_currency
            AND before.fx.to_currency = late.currency
    GROUP BY late.market, late.base_currency, late.currency
    HAVING
        CASE WHEN count(before.flag_id) > 0 THEN 6 ELSE 3 END * any_value(late.properties) < any_value(sale.properties)
),

dropped AS (
    SELECT
        few.market,
        few.base_currency,
        few.currency
    FROM few

    UNION ALL

    SELECT
        late.market,
        late.base_currency,
        late.currency
    FROM late
    SEMI JOIN (
        SELECT many.*
        FROM late AS many
        ANTI JOIN few
            ON
                few.market = many.market
                AND few.base_currency = many.base_currency
                AND few.currency = many.currency
    ) AS of_reference
        ON
            of_reference.currency = late.base_currency
            AND of_reference.market <> late.market
            AND of_reference.side <> late.side
),

-- Disparities, with the offer that each is compared with: the middle one in its currency, or the reference market's. Of
-- the reference market, all that deviate from it: `others`.
compared AS (
    SELECT
        found.subject_key,
        found.property_id,
        found.market,
        found.product_type,
        sign(found.size_pct) AS side,
        1 + found.size_pct / 100 AS level,
        found.fx IS NOT NULL AS is_converted,
        len(found.evidence) = 2 AS is_lone,
        found.evidence[1].source AS source,
        list_distinct(list_transform(found.evidence, LAMBDA item: item['source'])) AS sources, -- noqa: RF02,RF03
        list_filter(found.evidence, LAMBDA item: item['role'] = 'reference')[1].offer_key -- noqa: RF02,RF03
            AS reference_key,
        found.subject_key
        = mart.subject_key('market_disparity', concat_ws('|', source, reference_key)) AS is_of_reference, -- noqa: RF02
        CASE WHEN is_of_reference THEN reference_key ELSE found.evidence[1].offer_key END AS offer_key, -- noqa: RF02
        CASE
            WHEN found.fx IS NULL AND NOT is_of_reference -- noqa: RF02
                THEN list_filter(found.evidence, LAMBDA item: item['role'] = 'compared')[1].offer_key -- noqa: RF02,RF03
        END AS beside_key,
        CASE
            WHEN is_of_reference THEN found.evidence[1].offer_key -- noqa: RF02
            ELSE coalesce(beside_key, reference_key) -- noqa: RF02
        END AS compared_key,
        CASE
            WHEN is_of_reference -- noqa: RF02
                THEN
                    list_transform(
                        list_filter(found.evidence, LAMBDA item: item['role'] = 'market'), -- noqa: RF02,RF03
                        LAMBDA item: item['offer_key'] -- noqa: RF02,RF03
                    )
            ELSE [compared_key] -- noqa: RF02
        END AS others
    FROM night.found AS found
    WHERE found.rule = 'market_disparity'
),

-- Those that no open finding says already. One that has turned around is still about a price that was found to deviate.
begun AS (
    SELECT
        compared.*,
        before.flag_id IS NOT NULL AS has_turned
    FROM compared
    LEFT JOIN state.flag_open AS before
        ON
            before.rule = 'market_disparity'
            AND before.subject_key = compared.subject_key
    WHERE sign(before.size_pct) IS DISTINCT FROM compared.side
),

near AS MATERIALIZED (
    SELECT
        offer.source,
        offer.property_id,
        offer.offer_key,
        offer.market,
        offer.product_type,
        offer.check_in,
        offer.nights,
        offer.party,
        offer.room_id,
        offer.board_id,
        offer.policy_key,
        offer.currency,
        offer.is_offered,
        offer.valid_from
    FROM state.offer_open AS offer
    SEMI JOIN begun ON begun.property_id = offer.property_id
),

-- Where a third market has sold the offer until lately, and may be back, and what has changed since does not show which
-- price moved.
was_third AS (
    SELECT begun.subject_key
    FROM begun
    INNER JOIN near AS own
        ON
            own.source = begun.source
            AND own.property_id = begun.property_id
            AND own.offer_key = begun.offer_key
    INNER JOIN near AS other
        ON
            other.source = begun.source
            AND other.property_id = begun.property_id
            AND other.offer_key = begun.compared_key
    INNER JOIN near AS third
        ON
            third.source = own.source
            AND third.property_id = own.property_id
            AND third.product_type = own.product_type
            AND third.check_in = own.check_in
            AND third.nights = own.nights
            AND third.party = own.party
            AND third.room_id IS NOT DISTINCT FROM own.room_id
            AND third.board_id IS NOT DISTINCT FROM own.board_id
            AND third.policy_key = own.policy_key
            AND third.currency IS NOT DISTINCT FROM other.currency
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE
        third.market <> own.market
        AND third.market <> other.market
        AND NOT third.is_offered
    GROUP BY begun.subject_key, own.valid_from, other.valid_from
    HAVING
        max(third.valid_from)
        >= any_value(sweep.started_at) - to_hours(24 * any_value(analysis.silent_nights) + 12)
        AND NOT (
            own.valid_from >= max(third.valid_from)
            AND (other.valid_from < max(third.valid_from) OR bool_or(begun.has_turned))
        )
),

contrary AS (
    SELECT DISTINCT each.subject_key
    FROM (
        SELECT
            compared.subject_key,
            compared.source,
            compared.side,
            unnest(compared.others) AS other_key
        FROM compared
    ) AS each
    INNER JOIN state.flag_open AS before
        ON
            before.rule = 'market_disparity'
            AND before.subject_key
            = mart.subject_key('market_disparity', concat_ws('|', each.source, each.other_key))
            AND sign(before.size_pct) <> each.side
),

-- Those that an open finding about the other offer contradicts, or that are new while a third market is missing.
doubted AS (
    SELECT DISTINCT compared.*
    FROM compared
    LEFT JOIN begun ON begun.subject_key = compared.subject_key
    LEFT JOIN was_third ON was_third.subject_key = compared.subject_key
    LEFT JOIN contrary ON contrary.subject_key = compared.subject_key
    LEFT JOIN night.market_silent AS silent
        ON
            silent.market <> compared.market
            AND silent.operation = CASE compared.source WHEN 'multi' THEN 'multi' ELSE 'single' END
    WHERE
        contrary.subject_key IS NOT NULL
        OR was_third.subject_key IS NOT NULL
        OR (silent.market IS NOT NULL AND begun.subject_key IS NOT NULL)
),

-- Tonight's prices of the same offer in all markets, beside the reference market's price in the finding's own source:
-- in the other source, that one may differ.
seen AS (
    SELECT
        doubted.subject_key,
        doubted.is_of_reference,
        doubted.beside_key,
        doubted.market AS found_market,
        parity.offer_key,
        parity.market,
        parity.currency,
        parity.currency_basis,
        parity.total,
        any_value(parity.reference_total) FILTER (WHERE parity.source = doubted.source) OVER of_finding
            AS found_reference,
        CASE
            WHEN parity.source = doubted.source THEN parity.gap_pct
            ELSE
                (100 + parity.gap_pct) * parity.reference_total::DOUBLE / found_reference::DOUBLE -- noqa: RF02
                - 100
        END AS apart_pct,
        CASE
            WHEN parity.source = doubted.source
                THEN mart.is_level(parity.verdict, parity.gap_pct, analysis.disparity_pct)
            ELSE abs(apart_pct) <= analysis.disparity_pct + analysis.tolerance_pct -- noqa: RF02
        END AS is_met,
        sign(apart_pct) = -doubted.side AS is_opposite, -- noqa: RF02
        before.flag_id IS NOT NULL AS is_accused
    FROM doubted
    INNER JOIN mart.market_parity AS parity
        ON
            list_contains(doubted.sources, parity.source)
            AND parity.property_id = doubted.property_id
            AND parity.reference_offer_key = doubted.reference_key
    LEFT JOIN state.flag_open AS before
        ON
            before.rule = 'market_disparity'
            AND before.subject_key
            = mart.subject_key('market_disparity', concat_ws('|', doubted.source, parity.offer_key))
            AND sign(before.size_pct) <> doubted.side
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE
        parity.match_grade = 'exact'
        AND parity.currency_basis <> 'supplier_rate'
        AND parity.seen_sweep_id = sweep.sweep_id
        AND parity.reference_sweep_id = sweep.sweep_id
    WINDOW
        of_finding AS (PARTITION BY doubted.subject_key)
),

undecided AS (
    SELECT doubted.subject_key
    FROM doubted
    ANTI JOIN (
        SELECT seen.subject_key
        FROM seen
        CROSS JOIN ref.analysis AS analysis
        LEFT JOIN seen AS beside
            ON
                beside.subject_key = seen.subject_key
                AND CASE
                    WHEN seen.is_of_reference THEN beside.market < seen.market
                    ELSE beside.offer_key = seen.beside_key
                END
        WHERE
            seen.market <> seen.found_market
            AND CASE
                WHEN seen.is_of_reference
                    THEN
                        seen.is_opposite
                        AND beside.is_opposite
                        AND NOT seen.is_met
                        AND NOT beside.is_met
                        AND NOT (seen.is_accused AND beside.is_accused)
                        AND 100 * abs((100 + seen.apart_pct) / (100 + beside.apart_pct) - 1)
                        <= analysis.disparity_pct
                        + analysis.tolerance_pct
                        + CASE
                            WHEN seen.currency_basis = 'same' AND beside.currency_basis = 'same' THEN 0
                            ELSE analysis.reference_rate_pct
                        END
                WHEN seen.beside_key IS NULL THEN seen.currency_basis = 'same' AND seen.is_met
                ELSE
                    seen.market <> beside.market
                    AND seen.currency = beside.currency
                    AND 100 * abs(seen.total::DOUBLE / beside.total::DOUBLE - 1)
                    <= analysis.disparity_pct + analysis.tolerance_pct
            END
    ) AS decided ON decided.subject_key = doubted.subject_key
),

told AS (
    SELECT compared.*
    FROM compared
    ANTI JOIN undecided ON undecided.subject_key = compared.subject_key
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
    FROM compared AS lone
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
    FROM compared AS lone
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

-- How many properties show neither that it does nor that it does not.
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
),

repeated AS (
    SELECT begun.subject_key
    FROM begun
    SEMI JOIN known ON known.subject_key = begun.subject_key
)

SELECT
    mart.flag_id(found.rule, found.subject_key) AS flag_id,
    found.*
FROM night.found AS found
CROSS JOIN night.sweep AS sweep
ANTI JOIN dropped
    ON
        found.rule = 'fx_markup'
        AND found.evidence[1].role = 'market'
        AND dropped.market = found.market
        AND dropped.base_currency = found.fx.from_currency
        AND dropped.currency = found.fx.to_currency
ANTI JOIN undecided
    ON
        found.rule = 'market_disparity'
        AND undecided.subject_key = found.subject_key
ANTI JOIN repeated
    ON
        found.rule = 'market_disparity'
        AND repeated.subject_key = found.subject_key
WHERE found.check_in IS NULL OR found.check_in > sweep.snapshot_date
-- If a rule finds a key twice, it is one flag: the larger finding.
QUALIFY
    row_number() OVER (
        PARTITION BY found.rule, found.subject_key ORDER BY found.size_pct DESC NULLS LAST, found.finding ASC
    ) = 1
