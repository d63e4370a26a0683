-- One row per finding, period in which it was open, and case that it belongs to.
-- Every finding belongs to the case of its property, also to that of its market if there is one, and with it to that of
-- the supplier: `case_scope_next` of `staging` says when. What is first found once such a case has ended is not in it.
-- case_id: Case, as in report.finding_case.
-- scope: Scope of the case: `property`, `market` or `supplier`.
-- case_property_id: Property of the case; NULL: it concerns a market or the supplier.
-- case_market: Market of the case; NULL: it concerns the supplier, or a property gone quiet in several markets.
-- base_currency: ISO 4217 code of the base currency of a case about a pair of currencies; NULL: no pair.
-- pair_currency: ISO 4217 code of the other currency of that pair; NULL: no pair.
-- wider_scope: `market` or `supplier`: a case of this scope counts the finding, and this one is part of it; NULL: no.
-- is_open: TRUE: the finding is open, and counts in this case.
-- is_counted: TRUE: sizes and amounts of the case count it: it is open, or nothing of the case is.
-- offer: Key of the offer that deviates; of a finding about something else, its subject_key.
-- weight: Weight of the property; without one, it is 1.
-- scope_since: When the market or supplier last became the case; NULL: a case of a property.
-- scope_met_at: When enough properties last showed the rule; NULL: a case of a property.
-- scope_until: When too few properties showed the rule; NULL: enough do, or a case of a property.
-- properties_showing: Number of properties of the market with open findings of the rule; NULL: none.
-- properties_on_sale: Number of properties of the market on sale; NULL: unknown.
-- market_pct: If the property deviates from most of its market: the median there, in the unit of its rule; NULL: not.
-- begins_case: TRUE: no finding of the case was open before the night of this one, or only not compared or requested.
-- is_known: TRUE: a price that this night found was only off sale, not compared or not requested, and is as far off.
WITH flagged AS (
    SELECT
        -- Without sentence and evidence: several hundred thousand of them do not fit into memory.
        flag.flag_id,
        flag.rule,
        flag.first_flagged_at,
        flag.last_flagged_at,
        flag.resolved_at,
        flag.ended_by,
        -- A stay begins at midnight, but its finding was open until the next sweep.
        greatest(flag.resolved_at, ending.started_at) AS open_until,
        flag.severity,
        flag.source,
        flag.property_id,
        flag.market,
        flag.product_type,
        flag.check_in,
        flag.nights,
        flag.party,
        flag.currency,
        flag.size_pct,
        flag.amount,
        -- A disparity of the reference market's price begins with the prices that show it.
        CASE
            WHEN mart.compares_markets(flag.rule)
                THEN list_filter(flag.evidence, LAMBDA item: item['role'] = 'reference')[1].offer_key
        END AS reference_key,
        coalesce(
            CASE
                WHEN
                    flag.subject_key
                    = mart.subject_key(flag.rule, concat_ws('|', flag.source, reference_key))
                    THEN reference_key
            END,
            flag.evidence[1].offer_key,
            flag.subject_key
        ) AS offer,
        flag.resolved_at IS NULL AS is_open,
        CASE WHEN flag.rule = 'fx_markup' THEN flag.fx.from_currency END AS base_currency,
        CASE WHEN flag.rule = 'fx_markup' THEN flag.fx.to_currency END AS pair_currency,
        coalesce(weighed.weight, 1) AS weight
    FROM report.flag_history AS flag
    LEFT JOIN mart.weight AS weighed ON weighed.property_id = flag.property_id
    LEFT JOIN mart.sweep AS ending ON ending.sweep_id = flag.resolved_sweep_id
),

-- Number of properties of a market that show a rule.
in_market AS (
    SELECT
        flagged.rule,
        flagged.market,
        flagged.base_currency,
        flagged.pair_currency,
        count(DISTINCT flagged.property_id) AS properties_showing,
        greatest(properties_showing, any_value(sale.properties)) AS properties_on_sale
    FROM flagged
    LEFT JOIN mart.market_on_sale AS sale ON sale.market = flagged.market
    WHERE
        flagged.is_open
        AND flagged.market IS NOT NULL
    GROUP BY flagged.rule, flagged.market, flagged.base_currency, flagged.pair_currency
),

-- What was once a case of a market or the supplier keeps its row.
placed AS (
    SELECT
        flagged.*,
        in_market.properties_showing,
        in_market.properties_on_sale,
        of_market.rule IS NOT NULL OR flagged.rule = 'fx_markup' AS was_of_market,
        was_of_market AND of_market.ended_at IS NULL AS is_of_market,
        of_market.opened_at AS of_market_since,
        of_market.last_met_at AS of_market_met_at,
        of_market.ended_at AS of_market_until,
        -- What is found in a market that is no case itself is not the supplier's.
        was_of_market AND of_supplier.rule IS NOT NULL AS was_of_supplier,
        is_of_market AND was_of_supplier AND of_supplier.ended_at IS NULL AS is_of_supplier,
        of_supplier.opened_at AS of_supplier_since,
        of_supplier.last_met_at AS of_supplier_met_at,
        of_supplier.ended_at AS of_supplier_until,
        outlier.market_pct,
        outlier.rule IS NOT NULL AS is_outlier
    FROM flagged
    LEFT JOIN mart.case_outlier AS outlier
        ON
            outlier.rule = flagged.rule
            AND outlier.market = flagged.market
            AND outlier.property_id = flagged.property_id
    LEFT JOIN in_market
        ON
            in_market.rule = flagged.rule
            AND in_market.market = flagged.market
            AND in_market.base_currency IS NOT DISTINCT FROM flagged.base_currency
            AND in_market.pair_currency IS NOT DISTINCT FROM flagged.pair_currency
    LEFT JOIN state.case_scope AS of_market
        ON
            of_market.rule = flagged.rule
            AND of_market.market = flagged.market
            AND of_market.base_currency IS NOT DISTINCT FROM flagged.base_currency
            AND of_market.currency IS NOT DISTINCT FROM flagged.pair_currency
    LEFT JOIN state.case_scope AS of_supplier
        ON
            of_supplier.rule = flagged.rule
            AND of_supplier.market IS NULL
            AND of_supplier.base_currency IS NOT DISTINCT FROM flagged.base_currency
            AND of_supplier.currency IS NOT DISTINCT FROM flagged.pair_currency
),

-- Mark-ups that one property has had: the market's case is about it, and it needs no case of its own.
only_one AS (
    SELECT
        flagged.market,
        flagged.base_currency,
        flagged.pair_currency
    FROM flagged
    WHERE flagged.rule = 'fx_markup'
    GROUP BY flagged.market, flagged.base_currency, flagged.pair_currency
    HAVING min(flagged.property_id) = max(flagged.property_id)
),

-- Each flag under every case that it belongs to, the narrower cases as parts of the widest.
scoped AS NOT MATERIALIZED (
    SELECT
        'property' AS scope,
        placed.property_id AS case_property_id,
        -- Flags without a wider case belong to the property, whichever markets it has gone quiet in.
        CASE
            WHEN placed.rule <> 'property_gone_quiet' OR placed.is_of_supplier OR placed.is_of_market
                THEN placed.market
        END AS case_market,
        CASE
            WHEN placed.is_outlier THEN NULL
            WHEN placed.is_of_supplier THEN 'supplier'
            WHEN placed.is_of_market THEN 'market'
        END AS wider_scope,
        NULL::TIMESTAMPTZ AS scope_since,
        NULL::TIMESTAMPTZ AS scope_met_at,
        NULL::TIMESTAMPTZ AS scope_until,
        placed.*
    FROM placed
    ANTI JOIN only_one
        ON
            placed.rule = 'fx_markup'
            AND only_one.market = placed.market
            AND only_one.base_currency = placed.base_currency
            AND only_one.pair_currency = placed.pair_currency

    UNION ALL BY NAME

    SELECT
        'market' AS scope,
        NULL AS case_property_id,
        placed.market AS case_market,
        CASE WHEN placed.is_of_supplier THEN 'supplier' END AS wider_scope,
        placed.of_market_since AS scope_since,
        placed.of_market_met_at AS scope_met_at,
        placed.of_market_until AS scope_until,
        placed.* REPLACE (placed.is_open AND placed.is_of_market AND NOT placed.is_outlier AS is_open)
    FROM placed
    WHERE
        placed.was_of_market
        -- Otherwise an ended case would cost more with each finding of another cause.
        AND coalesce(placed.first_flagged_at < placed.of_market_until, TRUE)

    UNION ALL BY NAME

    SELECT
        'supplier' AS scope,
        NULL AS case_property_id,
        NULL AS case_market,
        NULL AS wider_scope,
        placed.of_supplier_since AS scope_since,
        placed.of_supplier_met_at AS scope_met_at,
        placed.of_supplier_until AS scope_until,
        placed.* REPLACE (placed.is_open AND placed.is_of_supplier AND NOT placed.is_outlier AS is_open)
    FROM placed
    WHERE
        placed.was_of_supplier
        AND coalesce(placed.first_flagged_at < least(placed.of_market_until, placed.of_supplier_until), TRUE)
),

-- Hashing costs more than the rest, and a case has many flags.
identified AS MATERIALIZED (
    SELECT
        one.rule,
        one.case_property_id,
        one.case_market,
        one.base_currency,
        one.pair_currency,
        mart.case_id(one.rule, one.case_property_id, one.case_market, one.base_currency, one.pair_currency) AS case_id
    FROM (
        SELECT DISTINCT
            scoped.rule,
            scoped.case_property_id,
            scoped.case_market,
            scoped.base_currency,
            scoped.pair_currency
        FROM scoped
    ) AS one
),

named AS NOT MATERIALIZED (
    SELECT
        scoped.*,
        identified.case_id
    FROM scoped
    INNER JOIN identified
        ON
            identified.rule = scoped.rule
            AND identified.case_property_id IS NOT DISTINCT FROM scoped.case_property_id
            AND identified.case_market IS NOT DISTINCT FROM scoped.case_market
            AND identified.base_currency IS NOT DISTINCT FROM scoped.base_currency
            AND identified.pair_currency IS NOT DISTINCT FROM scoped.pair_currency
),

-- What was off sale for silent_nights at most, and is back as far off in the same direction. What only was not compared
-- may be so for as long as the reference market is kept without an offer; what was not requested, for unrequested_days.
back AS (
    SELECT
        again.flag_id,
        again.first_flagged_at,
        again.source,
        again.property_id,
        again.offer,
        again.former['ended_by'] AS ended_by,
        again.former['ended_at'] AS ended_at,
        again.former['first_flagged_at'] AS former_flagged_at
    FROM (
        SELECT
            flagged.*,
            lag(
                {
                    'ended_by': flagged.ended_by,
                    'ended_at': flagged.resolved_at,
                    'first_flagged_at': flagged.first_flagged_at,
                    'size_pct': abs(flagged.size_pct)
                }
            )
                OVER (PARTITION BY flagged.flag_id, sign(flagged.size_pct) ORDER BY flagged.first_flagged_at)
                AS former
        FROM flagged
        SEMI JOIN (
            SELECT one.flag_id
            FROM flagged AS one
            GROUP BY one.flag_id
            HAVING count(*) > 1
        ) AS repeated ON repeated.flag_id = flagged.flag_id
    ) AS again
    CROSS JOIN ref.analysis AS analysis
    WHERE
        again.former['ended_by'] IN ('gone', 'not_asked', 'not_compared')
        AND again.former['ended_at']
        >= again.first_flagged_at - to_hours(
            24 * CASE again.former['ended_by']
                WHEN 'not_asked' THEN greatest(analysis.silent_nights, analysis.unrequested_days)
                WHEN 'not_compared' THEN greatest(analysis.silent_nights, analysis.reference_gone_days)
                ELSE analysis.silent_nights
            END
            + 12
        )
        AND again.former['size_pct']
        >= abs(again.size_pct) - analysis.disparity_pct - analysis.tolerance_pct
),

-- Not so if the price came back as it should be, and deviated later.
known AS (
    SELECT
        back.flag_id,
        back.first_flagged_at,
        CASE WHEN back.ended_by IN ('not_asked', 'not_compared') THEN back.former_flagged_at END AS former_flagged_at
    FROM back
    ANTI JOIN mart.offer_history AS history
        ON
            back.ended_by IN ('gone', 'not_asked')
            AND history.source = back.source
            AND history.property_id = back.property_id
            AND history.offer_key = back.offer
            AND history.change = 'value'
            AND history.valid_from > back.ended_at
            AND history.valid_from <= back.first_flagged_at
            -- What was not requested may deviate by another amount once it is requested again.
            AND (back.ended_by = 'gone' OR history.valid_from < back.first_flagged_at)
),

-- Flags of a case succeed each other: as stays begin, some end and others are raised. A case opened after the last
-- night without any. Those that only were not compared, or not requested, were not put right in between.
raised AS (
    SELECT
        named.case_id,
        named.first_flagged_at,
        bool_or(known.flag_id IS NOT NULL) AS is_known,
        max(coalesce(later.first_flagged_at, named.open_until, TIMESTAMPTZ 'infinity')) AS until
    FROM named
    LEFT JOIN known AS later
        ON
            later.flag_id = named.flag_id
            AND later.former_flagged_at = named.first_flagged_at
    LEFT JOIN known
        ON
            known.flag_id = named.flag_id
            AND known.first_flagged_at = named.first_flagged_at
    GROUP BY named.case_id, named.first_flagged_at
),

begun AS (
    SELECT
        raised.*,
        coalesce(
            max(raised.until) OVER (
                PARTITION BY raised.case_id
                ORDER BY raised.first_flagged_at
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) < raised.first_flagged_at,
            TRUE
        ) AS begins_case
    FROM raised
),

opened AS (
    SELECT DISTINCT named.case_id
    FROM named
    WHERE named.is_open
)

SELECT
    named.case_id,
    named.flag_id,
    named.rule,
    named.first_flagged_at,
    named.last_flagged_at,
    named.resolved_at,
    named.severity,
    named.source,
    named.property_id,
    named.market,
    named.product_type,
    named.check_in,
    named.nights,
    named.party,
    named.currency,
    named.size_pct,
    named.amount,
    named.scope,
    named.case_property_id,
    named.case_market,
    named.base_currency,
    named.pair_currency,
    named.wider_scope,
    named.is_open,
    named.is_open OR opened.case_id IS NULL AS is_counted,
    named.offer,
    named.weight,
    named.scope_since,
    named.scope_met_at,
    named.scope_until,
    named.properties_showing,
    named.properties_on_sale,
    named.market_pct,
    begun.begins_case,
    begun.is_known
FROM named
INNER JOIN begun
    ON
        begun.case_id = named.case_id
        AND begun.first_flagged_at = named.first_flagged_at
LEFT JOIN opened ON opened.case_id = named.case_id
