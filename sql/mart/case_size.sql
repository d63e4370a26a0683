-- One row per case: its extent and sizes, and since when it is there.
-- case_id: Case, as in report.finding_case.
-- rule: Rule of its findings.
-- scope: Scope of the cause: `property`, `market` or `supplier`.
-- property_id: Property of the case; NULL: it concerns a market or the supplier.
-- only_property_id: Property of a mark-up that no other property has shown, though its case is the market's; else NULL.
-- market: Market of the case; NULL: it concerns the supplier, or a property that has gone quiet in several markets.
-- base_currency: ISO 4217 code of the base currency of a case about a pair of currencies; NULL: no pair.
-- currency: ISO 4217 code of the other currency of that pair; NULL: no pair.
-- wider_scope: `market` or `supplier`: it is part of a case of this scope; NULL: it is not.
-- rank_of_severity: Highest severity of its counted findings: 1 is `high`, 2 `medium`, 3 `low`.
-- flags: Number of open findings; 0: the case is closed.
-- offers: Number of offers (or other subjects) with open findings, once for all currencies.
-- stays: Number of stays with open findings; 0: not about single stays.
-- properties: Number of properties with open findings.
-- properties_showing: Number of properties of the market with open findings of the rule; NULL: none.
-- properties_on_sale: Number of properties of the market on sale; NULL: unknown.
-- higher: Number of properties with open findings of a size above zero.
-- lower: Number of properties with open findings of a size below zero.
-- lowest_pct: Smallest size of its counted findings, in its unit.
-- median_pct: Median size of its counted findings, in its unit.
-- highest_pct: Largest size of its counted findings, in its unit.
-- highest_below_pct: Largest size of them below zero, in its unit; NULL: none.
-- lowest_above_pct: Smallest size of them above zero, in its unit; NULL: none.
-- unit: Unit of its sizes as it follows their numbers: `%`, `% of the total` or ` percentage points`.
-- has_direction: TRUE: sizes above and below zero differ in meaning.
-- market_pct: If the property deviates from most of its market: the median there, in its unit; NULL: it does not.
-- exposure_weight: Sum of the weights of its properties with open findings; a property without a weight counts 1.
-- markets: Markets of its counted findings.
-- is_of_packages: TRUE: all open findings are about packages.
-- is_lagging: TRUE: a rate of the last 31 days explains a mark-up.
-- first_seen_at: Start of the first sweep that raised one of its findings.
-- last_seen_at: Start of the last sweep that observed its evidence.
-- opened_at: Start of the sweep that opened it the last time.
-- known_since: The same, unless prices were only off sale or not observed: an acknowledgement since then holds.
-- closed_at: When its last finding ended, or too few of its properties showed the rule; NULL: open.
WITH grouped AS (
    SELECT
        flag.case_id,
        flag.rule,
        flag.scope,
        flag.case_property_id AS property_id,
        flag.case_market AS market,
        flag.base_currency,
        flag.pair_currency AS currency,
        any_value(flag.wider_scope) FILTER (WHERE flag.is_open) AS wider_scope,
        count(*) FILTER (WHERE flag.is_open) AS flags,
        count(DISTINCT row(flag.check_in, flag.nights, flag.party)) FILTER (
            -- A mark-up is of all stays of a property; its check-in is that of an example, another one each night.
            WHERE flag.is_open AND flag.check_in IS NOT NULL AND flag.rule <> 'fx_markup'
        ) AS stays,
        count(DISTINCT flag.property_id) FILTER (WHERE flag.is_open) AS properties,
        min(flag.first_flagged_at) AS first_seen_at,
        greatest(max(flag.first_flagged_at) FILTER (WHERE flag.begins_case), any_value(flag.scope_since)) AS opened_at,
        greatest(
            max(flag.first_flagged_at) FILTER (WHERE flag.begins_case AND NOT flag.is_known),
            any_value(flag.scope_since)
        ) AS known_since,
        CASE
            WHEN any_value(flag.scope_until) IS NULL THEN max(flag.last_flagged_at)
            -- What is still found after the end is of other cases. On the first day with too few, it was still one.
            ELSE
                greatest(
                    any_value(flag.scope_met_at),
                    max(flag.last_flagged_at) FILTER (WHERE flag.last_flagged_at < flag.scope_until)
                )
        END AS last_seen_at,
        CASE
            WHEN flags = 0
                THEN
                    least(
                        any_value(flag.scope_until),
                        -- The same on the day on which its last flag ends and on later days.
                        max(coalesce(flag.resolved_at, TIMESTAMPTZ 'infinity'))
                    )
        END AS closed_at,
        count(DISTINCT flag.property_id) FILTER (WHERE flag.is_open AND flag.size_pct > 0) AS higher,
        count(DISTINCT flag.property_id) FILTER (WHERE flag.is_open AND flag.size_pct < 0) AS lower,
        bool_and(flag.product_type = 'Package') FILTER (WHERE flag.is_open) AS is_of_packages,
        max(flag.properties_showing) AS properties_showing,
        max(flag.properties_on_sale) AS properties_on_sale,
        any_value(flag.market_pct) FILTER (WHERE flag.scope = 'property' AND flag.is_open) AS market_pct,
        -- A mark-up of one property is a call to that property, though its id is that of the market and the currencies.
        CASE
            WHEN
                flag.rule = 'fx_markup'
                AND flag.scope = 'market'
                AND min(flag.property_id) = max(flag.property_id)
                THEN min(flag.property_id)
        END AS only_property_id
    FROM mart.case_flag AS flag
    GROUP BY
        flag.case_id,
        flag.rule,
        flag.scope,
        flag.case_property_id,
        flag.case_market,
        flag.base_currency,
        flag.pair_currency
),

-- A market that is requested in two currencies has each offer twice.
counted AS (
    SELECT
        of_stay.case_id,
        sum(of_stay.offers)::BIGINT AS offers
    FROM (
        SELECT
            of_currency.case_id,
            max(of_currency.offers) AS offers
        FROM (
            SELECT
                flag.case_id,
                flag.property_id,
                flag.market,
                flag.check_in,
                flag.nights,
                flag.party,
                count(DISTINCT flag.offer) AS offers
            FROM mart.case_flag AS flag
            WHERE flag.is_open
            GROUP BY
                flag.case_id, flag.property_id, flag.market, flag.currency, flag.check_in, flag.nights, flag.party
        ) AS of_currency
        GROUP BY
            of_currency.case_id,
            of_currency.property_id,
            of_currency.market,
            of_currency.check_in,
            of_currency.nights,
            of_currency.party
    ) AS of_stay
    GROUP BY of_stay.case_id
),

weighed AS (
    SELECT
        each.case_id,
        sum(each.weight::DECIMAL(38, 9))::DOUBLE AS exposure_weight
    FROM (
        SELECT DISTINCT
            flag.case_id,
            flag.property_id,
            flag.weight
        FROM mart.case_flag AS flag
        WHERE flag.is_open
    ) AS each
    GROUP BY each.case_id
),

sized AS (
    SELECT
        flag.case_id,
        min(CASE flag.severity WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END) AS rank_of_severity,
        min(flag.size_pct) AS lowest_pct,
        median(flag.size_pct) AS median_pct,
        max(flag.size_pct) AS highest_pct,
        coalesce(list(DISTINCT flag.market ORDER BY flag.market) FILTER (WHERE flag.market IS NOT NULL), [])
            AS markets,
        max(flag.size_pct) FILTER (WHERE flag.size_pct < 0) AS highest_below_pct,
        min(flag.size_pct) FILTER (WHERE flag.size_pct > 0) AS lowest_above_pct,
        -- Sizes above and below zero differ in meaning. A discount with a plus sign would read as a higher price.
        mart.is_signed(any_value(flag.rule))
        OR min(flag.size_pct) < 0 AS has_direction,
        -- As it follows a number.
        CASE WHEN starts_with(mart.size_unit(any_value(flag.rule)), '%') THEN '' ELSE ' ' END
        || mart.size_unit(any_value(flag.rule)) AS unit,
        count(late.flag_id) > 0 AS is_lagging
    FROM mart.case_flag AS flag
    LEFT JOIN report.late_markup AS late
        ON
            late.flag_id = flag.flag_id
            AND late.first_flagged_at = flag.first_flagged_at
    WHERE flag.is_counted
    GROUP BY flag.case_id
)

SELECT
    grouped.case_id,
    grouped.rule,
    grouped.scope,
    grouped.property_id,
    grouped.only_property_id,
    grouped.market,
    grouped.base_currency,
    grouped.currency,
    grouped.wider_scope,
    sized.rank_of_severity,
    grouped.flags,
    coalesce(counted.offers, 0) AS offers,
    grouped.stays,
    grouped.properties,
    grouped.properties_showing,
    grouped.properties_on_sale,
    grouped.higher,
    grouped.lower,
    sized.lowest_pct,
    sized.median_pct,
    sized.highest_pct,
    sized.highest_below_pct,
    sized.lowest_above_pct,
    sized.has_direction,
    sized.unit,
    grouped.market_pct,
    coalesce(weighed.exposure_weight, 0) AS exposure_weight,
    sized.markets,
    coalesce(grouped.is_of_packages, FALSE) AS is_of_packages,
    sized.is_lagging,
    grouped.first_seen_at,
    grouped.last_seen_at,
    grouped.opened_at,
    grouped.known_since,
    grouped.closed_at
FROM grouped
INNER JOIN sized ON sized.case_id = grouped.case_id
LEFT JOIN counted ON counted.case_id = grouped.case_id
LEFT JOIN weighed ON weighed.case_id = grouped.case_id
