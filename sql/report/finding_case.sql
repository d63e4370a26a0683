-- One row per case: findings of one rule with one cause to call about, with its status and notes.
-- Usually a case is one rule, property and market. A property gone quiet is one case however many markets it concerns,
-- because it needs one call. If most properties of a market show the rule, or more than a quarter of them and more than
-- in other markets, the case is the market's; if most markets do, it is the supplier's: `case_scope_next` of `staging`
-- defines the bounds. Such a case closes on the second day with too few properties; its row stays, and the properties
-- are cases again. A mark-up on the reference rate is one case per market and pair of currencies, and its properties
-- are parts of it; if only one has ever shown it, it has no parts. It then names that property, unless a rate of the
-- last 31 days explains its prices: a rate that lags is the supplier's, whichever property shows it first.
-- A property that deviates from most of its market keeps its own case and flags: see mart.case_outlier.
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
-- stays: Number of stays with such flags; 0: not about a stay, such as a property gone quiet.
-- properties: Number of properties with such flags.
-- lowest_pct: Smallest size of its open flags, in percent; of a closed case, of all its flags.
-- median_pct: Median size of its open flags, in percent; of a closed case, of all its flags.
-- highest_pct: Largest size of its open flags, in percent; of a closed case, of all its flags.
-- exposure_weight: Sum of the weights of its properties with open flags; a property without a weight counts 1.
-- amounts: Sum over stays of the median absolute amount of its open flags (closed: of all its flags), by currency.
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
-- acknowledged_at: When it was acknowledged, since it opened or before its price was briefly off sale; NULL: not so.
-- muted_until: First day on which it is shown again; NULL: not muted.
-- owner: Person who handles it; NULL: none.
-- note: Latest note; NULL: none.
-- markets: Markets of its open flags; of a closed case, of all its flags.
-- exposure_eur: Its amounts in euro at the day's reference rates, each stay in one currency; NULL: a rate is unknown.
-- urgency: Place of the case, 1 is the most urgent: by status, exposure_eur, severity, exposure_weight and flags.
-- opened_at: Start of the sweep that opened it the last time; first_seen_at: the first time.
WITH flagged AS (
    SELECT
        -- Without sentence and evidence: several hundred thousand of them do not fit into memory.
        flag.* EXCLUDE (evidence, finding), -- noqa: RF02
        -- A disparity of the reference market's price begins with the prices that show it.
        CASE
            WHEN flag.rule = 'market_disparity'
                THEN list_filter(flag.evidence, LAMBDA item: item['role'] = 'reference')[1].offer_key -- noqa: RF02,RF03
        END AS reference_key,
        coalesce(
            CASE
                WHEN
                    flag.subject_key
                    = mart.subject_key(flag.rule, concat_ws('|', flag.source, reference_key)) -- noqa: RF02
                    THEN reference_key -- noqa: RF02
            END,
            flag.evidence[1].offer_key,
            flag.subject_key
        ) AS offer,
        row(flag.check_in, flag.nights, flag.party) AS stay,
        flag.resolved_at IS NULL AS is_open,
        CASE WHEN flag.rule = 'fx_markup' THEN flag.fx.from_currency END AS base_currency,
        CASE WHEN flag.rule = 'fx_markup' THEN flag.fx.to_currency END AS pair_currency,
        coalesce(weighed.weight, 1) AS weight
    FROM report.flag_history AS flag
    LEFT JOIN mart.weight AS weighed ON weighed.property_id = flag.property_id
),

-- Number of properties of a market that show a rule.
in_market AS (
    SELECT
        flagged.rule,
        flagged.market,
        flagged.base_currency,
        flagged.pair_currency,
        count(DISTINCT flagged.property_id) AS showing,
        greatest(showing, any_value(sale.properties)) AS judged -- noqa: RF02
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
        in_market.showing,
        in_market.judged,
        of_market.rule IS NOT NULL OR flagged.rule = 'fx_markup' AS was_of_market,
        was_of_market AND of_market.ended_at IS NULL AS is_of_market, -- noqa: RF02
        of_market.opened_at AS of_market_since,
        of_market.last_met_at AS of_market_met_at,
        of_market.ended_at AS of_market_until,
        of_supplier.rule IS NOT NULL AS was_of_supplier,
        was_of_supplier AND of_supplier.ended_at IS NULL AS is_of_supplier, -- noqa: RF02
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
scoped AS (
    SELECT
        'property' AS scope,
        placed.property_id AS case_property,
        -- Flags without a wider case belong to the property, whichever markets it has gone quiet in.
        CASE
            WHEN placed.rule <> 'property_gone_quiet' OR placed.is_of_supplier OR placed.is_of_market
                THEN placed.market
        END AS case_market,
        CASE
            WHEN placed.is_outlier THEN NULL
            WHEN placed.is_of_supplier THEN 'supplier'
            WHEN placed.is_of_market THEN 'market'
        END AS wider,
        NULL::TIMESTAMPTZ AS since,
        NULL::TIMESTAMPTZ AS met_at,
        NULL::TIMESTAMPTZ AS until,
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
        NULL AS case_property,
        placed.market AS case_market,
        CASE WHEN placed.is_of_supplier THEN 'supplier' END AS wider,
        placed.of_market_since AS since,
        placed.of_market_met_at AS met_at,
        placed.of_market_until AS until,
        placed.* REPLACE (placed.is_open AND placed.is_of_market AND NOT placed.is_outlier AS is_open)
    FROM placed
    WHERE placed.was_of_market

    UNION ALL BY NAME

    SELECT
        'supplier' AS scope,
        NULL AS case_property,
        NULL AS case_market,
        NULL AS wider,
        placed.of_supplier_since AS since,
        placed.of_supplier_met_at AS met_at,
        placed.of_supplier_until AS until,
        placed.* REPLACE (placed.is_open AND placed.is_of_supplier AND NOT placed.is_outlier AS is_open)
    FROM placed
    WHERE placed.was_of_supplier
),

-- Flags of a case succeed each other: as stays begin, some end and others are raised. A case opened after the last
-- night without any. If only a price was off sale for silent_nights, and is back as far off in the same direction, the
-- case stays acknowledged.
run AS (
    SELECT
        scoped.*,
        mart.case_id(scoped.rule, scoped.case_property, scoped.case_market, scoped.base_currency, scoped.pair_currency)
            AS case_id,
        max(coalesce(scoped.resolved_at, TIMESTAMPTZ 'infinity')) OVER (
            PARTITION BY case_id
            ORDER BY scoped.first_flagged_at, scoped.flag_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS earlier_until,
        lag(
            {
                'ended_by': scoped.ended_by,
                'until': scoped.resolved_at + to_hours(24 * analysis.silent_nights + 12),
                'largest_pct': abs(scoped.size_pct) + analysis.disparity_pct + analysis.tolerance_pct
            }
        )
            OVER (
                PARTITION BY case_id, scoped.flag_id, sign(scoped.size_pct)
                ORDER BY scoped.first_flagged_at
            )
            AS former,
        coalesce(
            former['ended_by'] IN ('gone', 'not_compared') -- noqa: RF02
            AND former['until'] >= scoped.first_flagged_at -- noqa: RF02
            AND former['largest_pct'] >= abs(scoped.size_pct), -- noqa: RF02
            FALSE
        ) AS is_back
    FROM scoped
    CROSS JOIN ref.analysis AS analysis
),

-- Prices that came back as they should be, and deviated again later.
deviated_again AS (
    SELECT DISTINCT
        run.flag_id,
        run.first_flagged_at
    FROM run
    INNER JOIN mart.offer_history AS history
        ON
            history.source = run.source
            AND history.property_id = run.property_id
            AND history.offer_key = run.offer
            AND history.valid_from = run.first_flagged_at
    WHERE
        run.is_back
        AND run.former['ended_by'] = 'gone' -- noqa: RF02
        AND history.change = 'value'
),

told AS (
    SELECT
        run.*,
        bool_or(run.is_back AND again.flag_id IS NULL) OVER (PARTITION BY run.case_id, run.first_flagged_at)
            AS is_known
    FROM run
    LEFT JOIN deviated_again AS again
        ON
            again.flag_id = run.flag_id
            AND again.first_flagged_at = run.first_flagged_at
),

grouped AS (
    SELECT
        scoped.case_id,
        scoped.rule,
        scoped.scope,
        scoped.case_property AS property_id,
        scoped.case_market AS market,
        scoped.base_currency,
        scoped.pair_currency AS currency,
        any_value(scoped.wider) FILTER (WHERE scoped.is_open) AS wider,
        count(*) FILTER (WHERE scoped.is_open) AS flags,
        count(DISTINCT scoped.stay) FILTER (
            WHERE scoped.is_open AND scoped.check_in IS NOT NULL
        ) AS stays,
        count(DISTINCT scoped.property_id) FILTER (WHERE scoped.is_open) AS properties,
        min(scoped.first_flagged_at) AS first_seen_at,
        greatest(
            max(scoped.first_flagged_at) FILTER (
                WHERE scoped.earlier_until IS NULL OR scoped.earlier_until < scoped.first_flagged_at
            ),
            any_value(scoped.since)
        ) AS opened_at,
        greatest(
            max(scoped.first_flagged_at) FILTER (
                WHERE
                (scoped.earlier_until IS NULL OR scoped.earlier_until < scoped.first_flagged_at)
                AND NOT scoped.is_known
            ),
            any_value(scoped.since)
        ) AS known_since,
        CASE
            WHEN any_value(scoped.until) IS NULL THEN max(scoped.last_flagged_at) ELSE any_value(scoped.met_at)
        END AS last_seen_at,
        CASE
            WHEN flags = 0 -- noqa: RF02
                THEN
                    least(
                        any_value(scoped.until),
                        -- The same on the day on which its last flag ends and on later days.
                        max(coalesce(scoped.resolved_at, TIMESTAMPTZ 'infinity'))
                    )
        END AS closed_at,
        count(DISTINCT scoped.property_id) FILTER (WHERE scoped.is_open AND scoped.size_pct > 0) AS higher,
        count(DISTINCT scoped.property_id) FILTER (WHERE scoped.is_open AND scoped.size_pct < 0) AS lower,
        bool_and(scoped.product_type = 'Package') FILTER (WHERE scoped.is_open) AS is_of_packages,
        max(scoped.showing) AS showing,
        max(scoped.judged) AS judged,
        any_value(scoped.market_pct) FILTER (WHERE scoped.scope = 'property' AND scoped.is_open) AS market_pct,
        -- A mark-up of one property is a call to that property, though its id is that of the market and the currencies.
        CASE
            WHEN
                scoped.rule = 'fx_markup'
                AND scoped.scope = 'market'
                AND min(scoped.property_id) = max(scoped.property_id)
                THEN min(scoped.property_id)
        END AS only_property_id
    FROM told AS scoped
    GROUP BY
        scoped.case_id,
        scoped.rule,
        scoped.scope,
        scoped.case_property,
        scoped.case_market,
        scoped.base_currency,
        scoped.pair_currency
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
                run.case_id,
                run.property_id,
                run.market,
                run.stay,
                count(DISTINCT run.offer) AS offers
            FROM run
            WHERE run.is_open
            GROUP BY run.case_id, run.property_id, run.market, run.currency, run.stay
        ) AS of_currency
        GROUP BY of_currency.case_id, of_currency.property_id, of_currency.market, of_currency.stay
    ) AS of_stay
    GROUP BY of_stay.case_id
),

-- For an open case its open flags; for a closed one all that it had.
said AS (
    SELECT
        run.*,
        CASE
            WHEN run.scope <> 'property'
                THEN abs(run.size_pct - median(run.size_pct) OVER (PARTITION BY run.case_id))
        END AS from_median,
        row(
            coalesce(from_median, 'infinity'), -- noqa: RF02
            CASE run.severity WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END,
            coalesce(-abs(run.size_pct), 'infinity'),
            run.flag_id,
            run.first_flagged_at
        ) AS place
    FROM run
    INNER JOIN grouped ON grouped.case_id = run.case_id
    WHERE
        run.is_open
        OR grouped.flags = 0
),

-- An offer in both a list and a detail answer is evidence once.
of_offer AS (
    SELECT
        said.case_id,
        arg_min(
            {
                'flag_id': said.flag_id,
                'first_flagged_at': said.first_flagged_at
            },
            said.place
        ) AS flag,
        min(said.place) AS place
    FROM said
    GROUP BY said.case_id, said.offer
),

best_of AS (
    SELECT
        of_offer.case_id,
        -- The best three, which takes less memory than sorting all of them.
        arg_min(of_offer.flag, of_offer.place, 3) AS best
    FROM of_offer
    GROUP BY of_offer.case_id
),

sized AS (
    SELECT
        said.case_id,
        min(CASE said.severity WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END) AS rank_of_severity,
        min(said.size_pct) AS lowest_pct,
        median(said.size_pct) AS median_pct,
        max(said.size_pct) AS highest_pct,
        coalesce(list(DISTINCT said.market ORDER BY said.market) FILTER (WHERE said.market IS NOT NULL), [])
            AS markets,
        max(said.size_pct) FILTER (WHERE said.size_pct < 0) AS highest_below_pct,
        min(said.size_pct) FILTER (WHERE said.size_pct > 0) AS lowest_above_pct,
        -- Sizes above and below zero differ in meaning. A discount with a plus sign would read as a higher price.
        any_value(said.rule) IN (
            'market_disparity', 'all_in_gap', 'fx_markup', 'penalty_amount_off_formula', 'total_above_reference'
        )
        OR min(said.size_pct) < 0 AS has_direction,
        count(late.flag_id) > 0 AS is_lagging
    FROM said
    LEFT JOIN report.late_markup AS late
        ON
            late.flag_id = said.flag_id
            AND late.first_flagged_at = said.first_flagged_at
    GROUP BY said.case_id
),

latest AS (
    SELECT
        max(sweep.started_at) AS started_at,
        max(sweep.snapshot_date) AS snapshot_date,
        arg_max(sweep.sweep_id, sweep.started_at) AS sweep_id
    FROM mart.sweep AS sweep
),

chosen AS (
    SELECT
        best.case_id,
        best.place,
        flag.flag_id,
        flag.finding,
        flag.market,
        flag.evidence,
        -- A difference stays open while only rates have moved, or fewer markets show it: its prices are then those of
        -- another night.
        CASE
            WHEN
                flag.rule = 'market_disparity'
                AND grouped.flags > 0
                AND flag.last_flagged_at < latest.started_at
                THEN flag.last_flagged_at
        END AS last_found_at
    FROM (
        SELECT
            best_of.case_id,
            unnest(best_of.best) AS flag,
            generate_subscripts(best_of.best, 1) AS place
        FROM best_of
    ) AS best
    INNER JOIN report.flag_history AS flag
        ON
            flag.flag_id = best.flag.flag_id
            AND flag.first_flagged_at = best.flag.first_flagged_at
    INNER JOIN grouped ON grouped.case_id = best.case_id
    CROSS JOIN latest
),

-- What those prices are now.
present AS (
    SELECT
        held.flag_id,
        arg_min(
            format(
                ' On {}: {:,.2f} {} in {}, {:,.2f} in {}.',
                latest.snapshot_date,
                parity.total::DOUBLE,
                parity.currency,
                parity.market,
                parity.reference_total::DOUBLE,
                parity.reference_market
            ),
            (parity.market <> held.market, parity.market)
        ) AS prices
    FROM (
        SELECT
            chosen.flag_id,
            chosen.market,
            unnest(chosen.evidence) AS item
        FROM chosen
        WHERE chosen.last_found_at IS NOT NULL
    ) AS held
    CROSS JOIN latest
    INNER JOIN mart.market_parity AS parity
        ON
            parity.source = held.item.source -- noqa: RF01
            AND parity.property_id = held.item.property_id -- noqa: RF01
            AND parity.offer_key = held.item.offer_key -- noqa: RF01
            AND parity.seen_sweep_id = latest.sweep_id
            AND parity.reference_sweep_id = latest.sweep_id
    WHERE
        parity.match_grade = 'exact'
        AND parity.currency_basis = 'same'
        AND held.market IN (parity.market, parity.reference_market)
    GROUP BY held.flag_id
),

proof AS (
    SELECT
        chosen.case_id,
        list(
            {
                'flag_id': chosen.flag_id,
                'finding': chosen.finding
                || coalesce(strftime(chosen.last_found_at AT TIME ZONE 'UTC', ' Last found on %Y-%m-%d.'), '')
                || coalesce(present.prices, '')
            }
            ORDER BY chosen.place
        ) AS evidence
    FROM chosen
    LEFT JOIN present ON present.flag_id = chosen.flag_id
    GROUP BY chosen.case_id
),

weighed AS (
    SELECT
        each.case_id,
        sum(each.weight::DECIMAL(38, 9))::DOUBLE AS exposure_weight
    FROM (
        SELECT DISTINCT
            scoped.case_id,
            scoped.property_id,
            scoped.weight
        FROM run AS scoped
        WHERE scoped.is_open
    ) AS each
    GROUP BY each.case_id
),

rate AS (
    SELECT
        rate_on.currency,
        rate_on.on_date,
        rate_on.rate
    FROM mart.fx_rate_on AS rate_on

    UNION

    -- Amounts in euro need no rates.
    SELECT
        'EUR' AS currency,
        latest.snapshot_date AS on_date,
        1 AS rate
    FROM latest
),

amount_of_market AS (
    SELECT
        of_stay.case_id,
        of_stay.property_id,
        of_stay.market,
        of_stay.currency,
        sum(of_stay.amount) AS amount
    FROM (
        -- The middle one, not the sum: a room costs a stay once, however many boards and policies it is offered with.
        SELECT
            offer.case_id,
            offer.property_id,
            offer.market,
            offer.currency,
            quantile_disc(offer.amount, 0.5) AS amount
        FROM (
            -- An offer in both a list and a detail answer is one offer.
            SELECT
                scoped.case_id,
                scoped.property_id,
                scoped.market,
                scoped.currency,
                scoped.stay,
                scoped.offer,
                max(abs(scoped.amount)) AS amount
            FROM said AS scoped
            WHERE
                scoped.amount IS NOT NULL
                AND scoped.currency IS NOT NULL
            GROUP BY
                scoped.case_id, scoped.property_id, scoped.market, scoped.currency, scoped.stay, scoped.offer
        ) AS offer
        GROUP BY offer.case_id, offer.property_id, offer.market, offer.currency, offer.stay
    ) AS of_stay
    GROUP BY of_stay.case_id, of_stay.property_id, of_stay.market, of_stay.currency
),

owed AS (
    SELECT
        each.case_id,
        -- Without a rate, amounts can be compared if all cases have the same single currency.
        CASE
            WHEN min(min(each.currency)) OVER () = max(max(each.currency)) OVER () THEN any_value(each.amount)
        END AS of_one_currency,
        list(
            {
                'currency': each.currency,
                'amount': each.amount
            }
            ORDER BY each.currency
        ) AS amounts
    FROM (
        SELECT
            owing.case_id,
            owing.currency,
            sum(owing.amount)::DECIMAL(38, 4) AS amount
        FROM amount_of_market AS owing
        GROUP BY owing.case_id, owing.currency
    ) AS each
    GROUP BY each.case_id
),

owed_in_euro AS (
    SELECT
        each.case_id,
        CASE WHEN bool_and(each.is_known) THEN sum(each.amount) END AS amount
    FROM (
        SELECT
            owing.case_id,
            count(*) = count(rate.rate) AS is_known,
            -- The same offers in another currency.
            max((owing.amount / rate.rate)::DECIMAL(38, 2)) AS amount
        FROM amount_of_market AS owing
        CROSS JOIN latest
        LEFT JOIN rate
            ON
                rate.currency = owing.currency
                AND rate.on_date = latest.snapshot_date
        GROUP BY owing.case_id, owing.property_id, owing.market
    ) AS each
    GROUP BY each.case_id
)

SELECT
    grouped.case_id,
    grouped.rule,
    CASE WHEN sized.is_lagging OR grouped.only_property_id IS NULL THEN grouped.scope ELSE 'property' END AS scope,
    coalesce(grouped.property_id, CASE WHEN NOT sized.is_lagging THEN grouped.only_property_id END) AS property_id,
    CASE
        WHEN grouped.scope = 'property' AND len(sized.markets) = 1 THEN sized.markets[1]
        ELSE grouped.market
    END AS market,
    grouped.base_currency,
    grouped.currency,
    CASE
        WHEN grouped.flags = 0 THEN 'closed'
        WHEN grouped.wider IS NOT NULL THEN 'part_of'
        WHEN noted.muted_until > latest.snapshot_date THEN 'muted'
        WHEN noted.acknowledged_at >= grouped.known_since THEN 'acknowledged'
        WHEN grouped.opened_at = latest.started_at THEN 'new'
        ELSE 'open'
    END AS status,
    CASE
        WHEN grouped.wider IS NOT NULL
            THEN
                mart.case_id(
                    grouped.rule,
                    NULL,
                    CASE WHEN grouped.wider = 'market' THEN grouped.market END,
                    grouped.base_currency,
                    grouped.currency
                )
    END AS part_of_case_id,
    CASE sized.rank_of_severity WHEN 1 THEN 'high' WHEN 2 THEN 'medium' ELSE 'low' END AS severity,
    grouped.flags,
    coalesce(counted.offers, 0) AS offers,
    grouped.stays,
    grouped.properties,
    sized.lowest_pct,
    sized.median_pct,
    sized.highest_pct,
    coalesce(weighed.exposure_weight, 0) AS exposure_weight,
    coalesce(owed.amounts, []) AS amounts,
    grouped.first_seen_at,
    grouped.last_seen_at,
    grouped.closed_at,
    CASE WHEN grouped.scope <> 'property' OR len(sized.markets) <= 1 THEN grouped.judged END AS properties_judged,
    100.0 * grouped.showing / properties_judged AS share_pct, -- noqa: RF02
    100 * mart.share_bound(grouped.showing, properties_judged, -1) AS share_lowest_pct, -- noqa: RF02
    100 * mart.share_bound(grouped.showing, properties_judged, 1) AS share_highest_pct, -- noqa: RF02
    CASE
        WHEN share_lowest_pct > 50 THEN 'systematic' -- noqa: RF02
        WHEN share_highest_pct < 50 THEN 'isolated' -- noqa: RF02
        ELSE 'undecided'
    END AS spread,
    proof.evidence,
    CASE
        WHEN
            grouped.flags <= 1 OR (grouped.rule = 'fx_markup' AND grouped.scope = 'property')
            THEN proof.evidence[1].finding
        ELSE
            format(
                '{}{}{}{}. {}',
                CASE
                    -- A mark-up is found once per property: its offers are not counted.
                    WHEN grouped.rule = 'fx_markup' THEN ''
                    WHEN grouped.stays = 0 THEN format('{:,} findings', grouped.flags)
                    -- An offer in both a list and a detail answer is one offer.
                    WHEN counted.offers = 1 THEN '1 offer'
                    WHEN grouped.stays = 1 THEN format('{:,} offers for 1 stay', counted.offers)
                    ELSE format('{:,} offers for {:,} stays', counted.offers, grouped.stays)
                END,
                CASE
                    WHEN grouped.rule = 'fx_markup' AND grouped.scope = 'market' AND grouped.judged IS NOT NULL
                        THEN
                            format(
                                '{:,} of the {:,} properties on sale in {}',
                                grouped.properties,
                                grouped.judged,
                                grouped.market
                            )
                    WHEN grouped.rule = 'fx_markup' THEN format('{:,} properties', grouped.properties)
                    WHEN grouped.scope = 'property' AND len(sized.markets) > 1
                        THEN
                            format(' in {} markets ({})', len(sized.markets), array_to_string(sized.markets, ', '))
                    WHEN grouped.scope = 'property' THEN ''
                    WHEN grouped.scope = 'market' AND grouped.judged IS NOT NULL
                        THEN
                            format(
                                ' of {:,} of the {:,} properties on sale in {}',
                                grouped.properties,
                                grouped.judged,
                                grouped.market
                            )
                    ELSE format(' of {:,} properties', grouped.properties)
                END,
                CASE
                    WHEN sized.lowest_pct IS NULL THEN ''
                    -- Dearer and cheaper prices are two sentences to a property, and one range would hide both.
                    WHEN grouped.rule = 'fx_markup' AND grouped.higher > 0 AND grouped.lower > 0
                        THEN
                            format(', {:+.1f}%', sized.lowest_above_pct)
                            || CASE
                                WHEN round(sized.lowest_above_pct, 1) = round(sized.highest_pct, 1) THEN ''
                                ELSE format(' to {:+.1f}%', sized.highest_pct)
                            END
                            || format(' at {:,} of them, {:+.1f}%', grouped.higher, sized.lowest_pct)
                            || CASE
                                WHEN round(sized.lowest_pct, 1) = round(sized.highest_below_pct, 1) THEN ''
                                ELSE format(' to {:+.1f}%', sized.highest_below_pct)
                            END
                            || format(' at {:,}', grouped.lower)
                    WHEN
                        round(sized.lowest_pct, 1) = round(sized.highest_pct, 1)
                        -- The example states the size if all have one.
                        AND regexp_matches(
                            proof.evidence[1].finding, format('(^|[^0-9.]){:.1f}0?%', abs(sized.lowest_pct))
                        )
                        THEN ''
                    WHEN greatest(abs(sized.lowest_pct), abs(sized.highest_pct)) >= 1e6
                        THEN format(', {:+.3g}% to {:+.3g}%', sized.lowest_pct, sized.highest_pct)
                    WHEN round(sized.lowest_pct, 1) = round(sized.highest_pct, 1) AND sized.has_direction
                        THEN format(', {:+.1f}%', sized.lowest_pct)
                    WHEN round(sized.lowest_pct, 1) = round(sized.highest_pct, 1)
                        THEN format(', a difference of {:.1f}%', sized.lowest_pct)
                    WHEN sized.has_direction THEN format(', {:+.1f}% to {:+.1f}%', sized.lowest_pct, sized.highest_pct)
                    ELSE format(', differences of {:.1f}% to {:.1f}%', sized.lowest_pct, sized.highest_pct)
                END,
                CASE
                    WHEN
                        grouped.scope = 'property'
                        OR round(sized.lowest_pct, 1) = round(sized.highest_pct, 1)
                        OR (grouped.rule = 'fx_markup' AND least(grouped.higher, grouped.lower) > 0)
                        OR abs(sized.median_pct) >= 1e6
                        THEN ''
                    WHEN sized.has_direction THEN coalesce(format(', median {:+.1f}%', sized.median_pct), '')
                    ELSE coalesce(format(', median {:.1f}%', sized.median_pct), '')
                END,
                proof.evidence[1].finding
            )
    END
    || CASE
        WHEN grouped.market_pct IS NULL THEN ''
        ELSE
            format(' Median of the properties with this finding in {}: ', sized.markets[1])
            || CASE
                WHEN sized.has_direction THEN format('{:+.1f}%.', grouped.market_pct)
                ELSE format('{:.1f}%.', grouped.market_pct)
            END
    END
    -- Of "its prices", a property would rightly say that its room-only prices are equal.
    || CASE WHEN grouped.is_of_packages AND grouped.rule <> 'package_leak' THEN ' Package prices only.' ELSE '' END
        AS finding,
    CASE WHEN noted.acknowledged_at >= grouped.known_since THEN noted.acknowledged_at END AS acknowledged_at,
    noted.muted_until,
    noted.owner,
    noted.note,
    sized.markets,
    CASE WHEN owed.amounts IS NULL THEN 0 ELSE owed_in_euro.amount END AS exposure_eur,
    row_number() OVER (
        ORDER BY
            CASE status -- noqa: RF02
                WHEN 'new' THEN 1
                WHEN 'open' THEN 2
                WHEN 'acknowledged' THEN 3
                WHEN 'muted' THEN 4
                WHEN 'part_of' THEN 5
                ELSE 6
            END ASC,
            exposure_eur DESC NULLS LAST, -- noqa: RF02
            owed.of_one_currency DESC NULLS LAST,
            sized.rank_of_severity ASC,
            weighed.exposure_weight DESC NULLS LAST,
            grouped.flags DESC,
            grouped.case_id ASC
    ) AS urgency,
    grouped.opened_at
FROM grouped
CROSS JOIN latest
INNER JOIN sized ON sized.case_id = grouped.case_id
INNER JOIN proof ON proof.case_id = grouped.case_id
LEFT JOIN counted ON counted.case_id = grouped.case_id
LEFT JOIN weighed ON weighed.case_id = grouped.case_id
LEFT JOIN owed ON owed.case_id = grouped.case_id
LEFT JOIN owed_in_euro ON owed_in_euro.case_id = grouped.case_id
LEFT JOIN mart.case_noted AS noted ON noted.case_id = grouped.case_id
