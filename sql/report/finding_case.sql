-- One row per case: findings of one rule with one cause to call about, with its status and notes.
-- Usually a case is one rule, property and market. A property gone quiet is one case however many markets it concerns,
-- because it needs one call. If most properties of a market show the rule, or more than a quarter of them and more than
-- in other markets, the case is the market's; if most markets do, it is the supplier's, except for a rule that compares
-- markets: `case_scope_next` of `staging` defines the bounds. Such a case closes on the second day with too few
-- properties; its row stays, and the properties are cases again. A case continues if its prices only were not compared
-- or not requested, and are as far off when they are again. A mark-up on the reference rate is one case per market and
-- pair of currencies, and its properties are parts of it; if only one has ever shown it, it has no parts. It then names
-- that property, unless a rate of the last 31 days explains its prices: a rate that lags is the supplier's, whichever
-- property shows it first. A property that deviates from most of its market keeps its own case and flags: see
-- mart.case_outlier.
-- case_id: Id of the case, the same every night; argument of `nightaudit case`, `explain` and `confirm`.
-- scope: Scope of the cause: `property`, `market` or `supplier`.
-- property_id: Property of the case; NULL: it concerns a market or the supplier.
-- market: Market of the case; NULL: it concerns the supplier, or a property that has gone quiet in several markets.
-- base_currency: ISO 4217 code of the base currency of a case about a pair of currencies; NULL: no pair.
-- currency: ISO 4217 code of the other currency of that pair; NULL: no pair.
-- status: `new`, `open`, `acknowledged`, `muted`, `closed`, or `part_of` a case of wider scope.
-- part_of_case_id: Case of wider scope that counts its flags; NULL: none.
-- severity: Highest severity of its open flags; of a closed case, of all its flags.
-- flags: Number of open flags; 0: the case is closed.
-- offers: Number of offers (or other subjects) with its open flags, once for all currencies; 0: it is closed.
-- stays: Number of stays with such flags; 0: not about single stays, such as a mark-up or a property gone quiet.
-- properties: Number of properties with such flags.
-- lowest_pct: Smallest size of its open flags, in the unit of its rule; of a closed case, of all its flags.
-- median_pct: Median size of its open flags, in the unit of its rule; of a closed case, of all its flags.
-- highest_pct: Largest size of its open flags, in the unit of its rule; of a closed case, of all its flags.
-- exposure_weight: Sum of the weights of its properties with open flags; a property without a weight counts 1.
-- amounts: Sum over stays of the middle absolute amount (the lower of two) of its open flags, by currency; closed: all.
-- A stay requested in several currencies counts in one of them.
-- first_seen_at: Start of the first sweep that raised one of its flags.
-- last_seen_at: Start of the last sweep that observed its evidence.
-- closed_at: When its last flag ended, or too few of its properties showed the rule; NULL: open.
-- spread: `isolated`, `undecided` or `systematic`, from the confidence interval of share_pct.
-- properties_judged: Number of properties of the market on sale; NULL: unknown, or a case of several markets.
-- share_pct: Properties of the market with open flags of this rule, in percent of properties_judged.
-- share_lowest_pct: Lower bound of share_pct: 95% Wilson interval.
-- share_highest_pct: Upper bound of share_pct: 95% Wilson interval.
-- evidence: Up to three of its flags: the most severe ones; for a market or the supplier, those of median size.
-- finding: The case in one sentence.
-- acknowledged_at: When it was acknowledged, since it opened or before its price was briefly unknown; NULL: not so.
-- muted_until: First day on which it is shown again; NULL: not muted.
-- owner: Person who handles it; NULL: none.
-- note: Latest note; NULL: none.
-- markets: Markets of its open flags; of a closed case, of all its flags.
-- exposure_eur: Its amounts in euro at the day's reference rates, each stay in one currency; NULL: a rate is unknown.
-- urgency: Place of the case, 1 is the most urgent: by status, exposure_eur, severity, exposure_weight and flags.
-- Amounts without a rate come after those in euro; what is not about an amount comes last.
-- opened_at: Start of the sweep that opened it the last time.
WITH latest AS (
    SELECT
        max(sweep.started_at) AS started_at,
        max(sweep.snapshot_date) AS snapshot_date
    FROM mart.sweep AS sweep
),

-- An acknowledgement holds for what was there: not for what came later, nor for more than twice the size, the stays or
-- the cost, nor for prices that are now off in the other direction. Of an older one, only the size is known. Where a
-- rate is unknown, the cost has grown if the amount in one of its currencies has, and in no other one has fallen.
acknowledged AS (
    SELECT
        noted.case_id,
        noted.acknowledged_at,
        CASE
            WHEN noted.acknowledged_lowest_pct IS NULL OR NOT sized.has_direction
                THEN format('{:.1f}', noted.acknowledged_pct)
            WHEN abs(noted.acknowledged_lowest_pct) > abs(noted.acknowledged_highest_pct)
                THEN format('{:+.1f}', noted.acknowledged_lowest_pct)
            ELSE format('{:+.1f}', noted.acknowledged_highest_pct)
        END || sized.unit AS acknowledged_size,
        CASE
            WHEN noted.acknowledged_stays = 1 THEN '1 stay'
            WHEN noted.acknowledged_stays > 1 THEN format('{:,} stays', noted.acknowledged_stays)
        END AS acknowledged_stays,
        CASE
            WHEN noted.acknowledged_eur > 0 THEN format('a cost of {:,.0f} EUR', noted.acknowledged_eur::DOUBLE)
            WHEN len(noted.acknowledged_amounts) > 0
                THEN
                    'a cost of '
                    || array_to_string(
                        list_transform(
                            noted.acknowledged_amounts,
                            LAMBDA said: format('{:,.0f} {}', said['amount']::DOUBLE, said['currency'])
                        ),
                        ' + '
                    )
        END AS acknowledged_cost,
        -- By currency, for times without a rate.
        list_transform(
            noted.acknowledged_amounts,
            LAMBDA said: coalesce(
                list_filter(owed.amounts, LAMBDA now: now['currency'] = said['currency'])[1].amount,
                0
            ) / nullif(said['amount'], 0)
        ) AS times_as_much,
        greatest(sized.highest_pct, 0) AS above,
        greatest(-sized.lowest_pct, 0) AS below,
        CASE
            WHEN noted.acknowledged_highest_pct IS NULL THEN noted.acknowledged_pct
            ELSE greatest(noted.acknowledged_highest_pct, 0)
        END AS above_then,
        CASE
            WHEN noted.acknowledged_lowest_pct IS NULL THEN noted.acknowledged_pct
            ELSE greatest(-noted.acknowledged_lowest_pct, 0)
        END AS below_then,
        coalesce(
            above > 2 * above_then + analysis.disparity_pct
            OR below > 2 * below_then + analysis.disparity_pct
            -- The largest difference is in the other direction, and no longer what was acknowledged there.
            OR (above > below AND below_then > above_then AND above > above_then + analysis.disparity_pct)
            OR (below > above AND above_then > below_then AND below > below_then + analysis.disparity_pct)
            OR (noted.acknowledged_stays > 0 AND sized.stays > 2 * noted.acknowledged_stays)
            OR CASE
                WHEN noted.acknowledged_eur IS NULL OR (owed.amounts IS NOT NULL AND owed.amount_eur IS NULL)
                    THEN list_max(times_as_much) > 2 AND list_min(times_as_much) >= 1
                ELSE noted.acknowledged_eur > 0 AND owed.amount_eur > 2 * noted.acknowledged_eur
            END,
            FALSE
        ) AS has_grown
    FROM mart.case_noted AS noted
    INNER JOIN mart.case_size AS sized ON sized.case_id = noted.case_id
    LEFT JOIN mart.case_amount AS owed ON owed.case_id = noted.case_id
    CROSS JOIN ref.analysis AS analysis
    WHERE noted.acknowledged_at >= sized.known_since
)

SELECT
    each.case_id,
    each.rule,
    CASE WHEN each.is_lagging OR each.only_property_id IS NULL THEN each.scope ELSE 'property' END AS scope,
    coalesce(each.property_id, CASE WHEN NOT each.is_lagging THEN each.only_property_id END) AS property_id,
    CASE
        WHEN each.scope = 'property' AND len(each.markets) = 1 THEN each.markets[1]
        ELSE each.market
    END AS market,
    each.base_currency,
    each.currency,
    CASE
        WHEN each.flags = 0 THEN 'closed'
        WHEN each.wider_scope IS NOT NULL THEN 'part_of'
        WHEN noted.muted_until > latest.snapshot_date THEN 'muted'
        WHEN NOT acknowledged.has_grown THEN 'acknowledged'
        WHEN each.opened_at = latest.started_at THEN 'new'
        ELSE 'open'
    END AS status,
    CASE
        WHEN each.wider_scope IS NOT NULL
            THEN
                mart.case_id(
                    each.rule,
                    NULL,
                    CASE WHEN each.wider_scope = 'market' THEN each.market END,
                    each.base_currency,
                    each.currency
                )
    END AS part_of_case_id,
    CASE each.rank_of_severity WHEN 1 THEN 'high' WHEN 2 THEN 'medium' ELSE 'low' END AS severity,
    each.flags,
    each.offers,
    each.stays,
    each.properties,
    each.lowest_pct,
    each.median_pct,
    each.highest_pct,
    each.exposure_weight,
    coalesce(owed.amounts, []) AS amounts,
    each.first_seen_at,
    each.last_seen_at,
    each.closed_at,
    CASE WHEN each.scope <> 'property' OR len(each.markets) <= 1 THEN each.properties_on_sale END AS properties_judged,
    100.0 * each.properties_showing / properties_judged AS share_pct,
    100 * mart.share_bound(each.properties_showing, properties_judged, -1) AS share_lowest_pct,
    100 * mart.share_bound(each.properties_showing, properties_judged, 1) AS share_highest_pct,
    CASE
        WHEN share_lowest_pct > 50 THEN 'systematic'
        WHEN share_highest_pct < 50 THEN 'isolated'
        ELSE 'undecided'
    END AS spread,
    said.evidence,
    CASE
        WHEN
            each.flags <= 1 OR (each.rule = 'fx_markup' AND each.scope = 'property')
            THEN said.evidence[1].finding
        ELSE
            format(
                '{}{}{}. {}',
                CASE
                    -- A mark-up is found once per property: its offers are not each.
                    WHEN each.rule = 'fx_markup' THEN ''
                    WHEN each.stays = 0 THEN format('{:,} findings', each.flags)
                    -- An offer in both a list and a detail answer is one offer.
                    WHEN each.offers = 1 THEN '1 offer'
                    WHEN each.stays = 1 THEN format('{:,} offers for 1 stay', each.offers)
                    ELSE format('{:,} offers for {:,} stays', each.offers, each.stays)
                END,
                CASE
                    WHEN each.rule = 'fx_markup' AND each.scope = 'market' AND each.properties_on_sale IS NOT NULL
                        THEN
                            format(
                                '{:,} of the {:,} properties on sale in {}',
                                each.properties,
                                each.properties_on_sale,
                                each.market
                            )
                    WHEN each.rule = 'fx_markup' THEN format('{:,} properties', each.properties)
                    WHEN each.scope = 'property' AND len(each.markets) > 1
                        THEN
                            format(' in {} markets ({})', len(each.markets), array_to_string(each.markets, ', '))
                    WHEN each.scope = 'property' THEN ''
                    WHEN each.scope = 'market' AND each.properties_on_sale IS NOT NULL
                        THEN
                            format(
                                ' of {:,} of the {:,} properties on sale in {}',
                                each.properties,
                                each.properties_on_sale,
                                each.market
                            )
                    ELSE format(' of {:,} properties', each.properties)
                END,
                -- Sizes are written in percent, and their unit put in its place; of a range, words follow its end.
                replace(
                    replace(
                        CASE
                            WHEN each.lowest_pct IS NULL THEN ''
                            -- Dearer and cheaper prices are two sentences to a property, and one range would hide both.
                            WHEN each.rule = 'fx_markup' AND each.higher > 0 AND each.lower > 0
                                THEN
                                    format(', {:+.1f}%', each.lowest_above_pct)
                                    || CASE
                                        WHEN round(each.lowest_above_pct, 1) = round(each.highest_pct, 1) THEN ''
                                        ELSE format(' to {:+.1f}%', each.highest_pct)
                                    END
                                    || format(' at {:,} of them, {:+.1f}%', each.higher, each.lowest_pct)
                                    || CASE
                                        WHEN round(each.lowest_pct, 1) = round(each.highest_below_pct, 1) THEN ''
                                        ELSE format(' to {:+.1f}%', each.highest_below_pct)
                                    END
                                    || format(' at {:,}', each.lower)
                            WHEN
                                round(each.lowest_pct, 1) = round(each.highest_pct, 1)
                                -- The example states the size if all have one.
                                AND regexp_matches(
                                    said.evidence[1].finding,
                                    format('(^|[^0-9.]){:.1f}0?{}', abs(each.lowest_pct), each.unit)
                                )
                                THEN ''
                            WHEN greatest(abs(each.lowest_pct), abs(each.highest_pct)) >= 1e6
                                THEN format(', {:+.3g}% to {:+.3g}%', each.lowest_pct, each.highest_pct)
                            WHEN round(each.lowest_pct, 1) = round(each.highest_pct, 1) AND each.has_direction
                                THEN format(', {:+.1f}%', each.lowest_pct)
                            WHEN round(each.lowest_pct, 1) = round(each.highest_pct, 1)
                                THEN format(', a difference of {:.1f}%', each.lowest_pct)
                            WHEN each.has_direction
                                THEN format(', {:+.1f}% to {:+.1f}%', each.lowest_pct, each.highest_pct)
                            ELSE format(', differences of {:.1f}% to {:.1f}%', each.lowest_pct, each.highest_pct)
                        END
                        || CASE
                            WHEN
                                each.scope = 'property'
                                OR round(each.lowest_pct, 1) = round(each.highest_pct, 1)
                                OR (each.rule = 'fx_markup' AND least(each.higher, each.lower) > 0)
                                OR abs(each.median_pct) >= 1e6
                                THEN ''
                            WHEN each.has_direction THEN coalesce(format(', median {:+.1f}%', each.median_pct), '')
                            ELSE coalesce(format(', median {:.1f}%', each.median_pct), '')
                        END,
                        '%',
                        each.unit
                    ),
                    each.unit || ' to ',
                    CASE WHEN starts_with(each.unit, '%') THEN '% to ' ELSE ' to ' END
                ),
                said.evidence[1].finding
            )
    END
    || CASE
        WHEN each.market_pct IS NULL THEN ''
        ELSE
            format(' Median of the properties with this finding in {}: ', each.markets[1])
            || CASE
                WHEN each.has_direction THEN format('{:+.1f}', each.market_pct)
                ELSE format('{:.1f}', each.market_pct)
            END
            || each.unit
            || '.'
    END
    -- Of "its prices", a property would rightly say that its room-only prices are equal.
    || CASE WHEN each.is_of_packages AND each.rule <> 'package_leak' THEN ' Package prices only.' ELSE '' END
    || CASE
        WHEN acknowledged.has_grown AND each.flags > 0
            THEN
                ' It was acknowledged'
                || coalesce(' at ' || acknowledged.acknowledged_size, '')
                || coalesce(
                    ' with '
                    || nullif(
                        concat_ws(' and ', acknowledged.acknowledged_stays, acknowledged.acknowledged_cost), ''
                    ),
                    ''
                )
                || '.'
        ELSE ''
    END AS finding,
    CASE WHEN NOT coalesce(acknowledged.has_grown, FALSE) THEN acknowledged.acknowledged_at END AS acknowledged_at,
    noted.muted_until,
    noted.owner,
    noted.note,
    each.markets,
    CASE WHEN owed.amounts IS NULL THEN 0 ELSE owed.amount_eur END AS exposure_eur,
    row_number() OVER (
        ORDER BY
            CASE status
                WHEN 'new' THEN 1
                WHEN 'open' THEN 2
                WHEN 'acknowledged' THEN 3
                WHEN 'muted' THEN 4
                WHEN 'part_of' THEN 5
                ELSE 6
            END ASC,
            -- What has no amount costs less than what has one of unknown worth.
            exposure_eur IS NOT DISTINCT FROM 0 ASC,
            exposure_eur DESC NULLS LAST,
            owed.amount_of_one_currency DESC NULLS LAST,
            each.rank_of_severity ASC,
            each.exposure_weight DESC NULLS LAST,
            each.flags DESC,
            each.case_id ASC
    ) AS urgency,
    each.opened_at
FROM mart.case_size AS each
CROSS JOIN latest
INNER JOIN mart.case_evidence AS said ON said.case_id = each.case_id
LEFT JOIN mart.case_amount AS owed ON owed.case_id = each.case_id
LEFT JOIN mart.case_noted AS noted ON noted.case_id = each.case_id
LEFT JOIN acknowledged ON acknowledged.case_id = each.case_id
