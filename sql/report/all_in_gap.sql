-- One row per detail offer whose total equals another market's, but whose price with mandatory fees does not.
-- size_pct: Gap of the all-in prices, in percent of compared_all_in; > 0: the market is dearer.
-- amount: Gap of the all-in prices, in currency; > 0: the market is dearer.
-- market: Market whose fees deviate.
-- fees_compared: Number of mandatory fees known in both answers.
-- all_in: Total + mandatory fees in the market, in currency.
-- reference_answered: Total + mandatory fees in the reference market, in its own currency.
-- reference_all_in: reference_answered in currency, at the rate that makes the totals equal, not a reference rate.
-- compared_with: Market that it is compared with; if the reference market deviates, the middle one of those that agree.
-- compared_answered: Total + mandatory fees in the compared_with market, in compared_currency.
-- compared_all_in: compared_answered in currency, at the rate that makes the totals equal.
-- compared_currency: ISO 4217 code of the currency in which the compared_with market was answered.
-- severity: `low`, `medium` or `high`, by size_pct.
-- A rate that has moved must not look like a fee: at the reference rate, totals meet if they do at any rate of the last
-- eight days, and fees must differ at all of them. Otherwise totals that meet by chance would turn fees that follow the
-- price into a gap. If the reference market's total deviates from most markets, its fees are no valid reference.
-- Two markets or more outvote the reference market if their all-in prices agree and they are more than half of all that
-- have a price, itself included, or more than those that may agree with it: then the fees that deviate are its own, and
-- all others are compared with the middle one of those that agree.
WITH equal AS (
    SELECT
        pair.* EXCLUDE ( -- noqa: RF02
            match_grade, gap, verdict, fees, reference_fees, all_in_gap, all_in_gap_pct, all_in_verdict -- noqa: RF02
        ),
        (pair.reference_total + pair.reference_fees)::DECIMAL(18, 4) AS reference_answered,
        CASE
            WHEN pair.currency_basis = 'same' THEN pair.reference_all_in
            ELSE
                mart.converted(
                    pair.reference_total + pair.reference_fees, pair.total, pair.reference_total, unit.minor_unit
                )
        END AS reference_equal,
        (pair.all_in - reference_equal)::DECIMAL(18, 4) AS fee_gap, -- noqa: RF02
        100 * fee_gap::DOUBLE / reference_equal::DOUBLE AS fee_gap_pct, -- noqa: RF02
        CASE
            WHEN pair.currency_basis = 'same' THEN pair.verdict = 'meet'
            ELSE
                mart.fits_rates(
                    pair.total,
                    pair.reference_total,
                    exchange.lowest_rate,
                    exchange.highest_rate,
                    analysis.tolerance_pct + analysis.reference_rate_pct
                )
        END AS is_met,
        pair.currency_basis = 'same' AND mart.is_level(pair.verdict, pair.gap_pct, analysis.disparity_pct) AS is_near,
        CASE
            WHEN pair.currency_basis = 'same' THEN fee_gap -- noqa: RF02
            ELSE
                greatest(
                    pair.fees::DOUBLE - pair.reference_fees::DOUBLE * exchange.highest_rate
                    * (1 + (analysis.tolerance_pct + analysis.reference_rate_pct) / 100),
                    0
                )
                + least(
                    pair.fees::DOUBLE - pair.reference_fees::DOUBLE * exchange.lowest_rate
                    * (1 - (analysis.tolerance_pct + analysis.reference_rate_pct) / 100),
                    0
                )
        END AS least_gap,
        analysis.tolerance_pct,
        analysis.disparity_pct,
        unit.minor_unit
    FROM mart.all_in_parity AS pair
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN mart.cross_rate AS exchange
        ON
            exchange.sweep_id = pair.seen_sweep_id
            AND exchange.to_currency = pair.currency
            AND exchange.from_currency = pair.reference_currency
    LEFT JOIN ref.currency AS unit ON unit.currency = pair.currency
    -- The same offer answered in another currency is the same finding.
    WHERE pair.currency_basis <> 'supplier_rate'
),

-- Totals that differ by no more than disparity_pct: they are no finding, but show what the others add to theirs.
priced AS MATERIALIZED (
    SELECT
        equal.*,
        sign(equal.fee_gap) AS side,
        equal.all_in::DOUBLE / equal.reference_equal::DOUBLE AS level,
        equal.is_met
        AND abs(equal.fee_gap) > mart.tolerance(equal.reference_equal, equal.tolerance_pct, equal.minor_unit)
        AND abs(equal.fee_gap_pct) > equal.disparity_pct
        AND abs(equal.least_gap) > equal.disparity_pct / 100 * equal.reference_equal::DOUBLE AS is_found
    FROM equal
    WHERE equal.is_met OR equal.is_near
),

-- Number of markets compared with such a reference offer, whatever their fees, and of those that do not meet it.
voted AS (
    SELECT
        pair.property_id,
        pair.reference_offer_key,
        count(DISTINCT pair.market) AS markets_compared,
        count(DISTINCT pair.market) FILTER (
            WHERE
            pair.verdict <> 'meet'
            AND coalesce(
                NOT mart.fits_rates(
                    pair.total,
                    pair.reference_total,
                    exchange.lowest_month_rate,
                    exchange.highest_month_rate,
                    analysis.tolerance_pct + analysis.reference_rate_pct
                ),
                TRUE
            )
        ) AS markets_apart,
        list(
            mart.observation(
                'market',
                pair.source,
                pair.property_id,
                pair.offer_key,
                pair.seen_sweep_id,
                pair.seen_search_id,
                pair.seen_offer_no
            )
            ORDER BY pair.market, pair.currency
        ) AS observations
    FROM mart.market_parity AS pair
    SEMI JOIN priced
        ON
            priced.is_found
            AND priced.property_id = pair.property_id
            AND priced.reference_offer_key = pair.reference_offer_key
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN mart.cross_rate AS exchange
        ON
            exchange.sweep_id = pair.seen_sweep_id
            AND exchange.to_currency = pair.currency
            AND exchange.from_currency = pair.reference_currency
    WHERE
        pair.source = 'detail'
        AND pair.match_grade = 'exact'
        AND pair.currency_basis <> 'supplier_rate'
    GROUP BY pair.property_id, pair.reference_offer_key
    HAVING 2 * markets_apart <= markets_compared -- noqa: RF02
),

-- Where all-in prices that differ from the reference market's in one direction lie: their lower median. A price that is
-- closer to the reference market's does not agree with them.
placed AS (
    SELECT
        priced.*,
        voted.markets_compared,
        voted.observations,
        abs(priced.level / quantile_disc(priced.level, 0.5) FILTER (WHERE priced.is_found) OVER of_side - 1)
            AS from_level,
        -- The totals set the rate, so a converted price needs no tolerance for one.
        coalesce(
            from_level <= (priced.disparity_pct + priced.tolerance_pct) / 100 -- noqa: RF02
            AND (priced.is_found OR from_level < abs(priced.level - 1)), -- noqa: RF02
            FALSE
        ) AS is_agreed,
        NOT is_agreed -- noqa: RF02
        AND NOT priced.is_found
        AND abs(priced.fee_gap_pct) <= priced.disparity_pct AS is_standing,
        mart.observation(
            'market',
            priced.source,
            priced.property_id,
            priced.offer_key,
            priced.seen_sweep_id,
            priced.seen_search_id,
            priced.seen_offer_no
        ) AS observed,
        mart.observation(
            'witness',
            priced.source,
            priced.property_id,
            priced.offer_key,
            priced.seen_sweep_id,
            priced.seen_search_id,
            priced.seen_offer_no
        ) AS as_witness
    FROM priced
    INNER JOIN voted
        ON
            voted.property_id = priced.property_id
            AND voted.reference_offer_key = priced.reference_offer_key
    WINDOW of_side AS (PARTITION BY priced.property_id, priced.reference_offer_key, priced.side)
),

-- Which markets agree with the reference market's price: one whose fees are unknown may do so, too.
stood AS (
    SELECT
        placed.property_id,
        placed.reference_offer_key,
        any_value(placed.markets_compared) + 1
        - count(DISTINCT placed.market) FILTER (WHERE placed.is_agreed OR placed.is_found) AS markets_left,
        count(DISTINCT placed.market) AS markets_priced,
        list_sort(
            list_distinct(
                list_append(
                    coalesce(list(placed.market) FILTER (WHERE placed.is_standing), []),
                    any_value(placed.reference_market)
                )
            )
        ) AS standing_markets,
        coalesce(
            list(placed.as_witness ORDER BY placed.market, placed.currency) FILTER (WHERE placed.is_standing), []
        ) AS witnesses,
        list_filter(
            any_value(placed.observations),
            LAMBDA item: NOT list_contains( -- noqa: RF02,RF03
                list_transform(witnesses, LAMBDA shown: shown['offer_key']), -- noqa: RF02,RF03
                item['offer_key'] -- noqa: RF02,RF03
            )
        ) AS others
    FROM placed
    GROUP BY placed.property_id, placed.reference_offer_key
),

-- What the middle one of those that agree with each other answered, and all prices that show it.
agreed AS (
    SELECT
        placed.property_id,
        placed.reference_offer_key,
        placed.side,
        list_sort(list_distinct(coalesce(list(placed.market) FILTER (WHERE placed.is_agreed), []))) AS markets,
        any_value(placed.markets_compared) AS markets_compared,
        arg_min(placed, (placed.from_level, placed.market, placed.currency)) FILTER (WHERE placed.is_found) AS middle,
        list(placed.observed ORDER BY placed.market, placed.currency) FILTER (WHERE placed.is_agreed) AS observations,
        list(placed.as_witness ORDER BY placed.market, placed.currency) AS witnesses
    FROM placed
    GROUP BY placed.property_id, placed.reference_offer_key, placed.side
    HAVING bool_or(placed.is_found)
),

-- The reference market's own price is one more vote: two against two accuse neither side.
outvoted AS (
    SELECT agreed.*
    FROM agreed
    INNER JOIN stood
        ON
            stood.property_id = agreed.property_id
            AND stood.reference_offer_key = agreed.reference_offer_key
    LEFT JOIN agreed AS across
        ON
            across.property_id = agreed.property_id
            AND across.reference_offer_key = agreed.reference_offer_key
            AND across.side = -agreed.side
    WHERE
        len(agreed.markets) >= 2
        AND len(agreed.markets) > coalesce(len(across.markets), 0)
        AND (2 * len(agreed.markets) > agreed.markets_compared + 1 OR len(agreed.markets) > stood.markets_left)
),

deviating AS (
    SELECT
        pair.source,
        pair.property_id,
        pair.market,
        pair.product_type,
        pair.check_in,
        pair.nights,
        pair.party,
        pair.currency,
        pair.room_id,
        pair.board_id,
        pair.policy_key,
        pair.offer_key,
        pair.reference_market,
        pair.total,
        pair.reference_converted,
        pair.gap_pct,
        pair.fees_compared,
        pair.all_in,
        pair.reference_answered,
        pair.reference_equal AS reference_all_in,
        coalesce(middle.market, pair.reference_market) AS compared_with,
        coalesce(middle.all_in, pair.reference_answered) AS compared_answered,
        coalesce(middle.all_in, pair.reference_equal) AS compared_all_in,
        coalesce(middle.currency, pair.reference_currency) AS compared_currency,
        CASE WHEN middle.market IS NULL THEN pair.rate END AS rate,
        pair.rate_date,
        CASE WHEN middle.market IS NULL THEN [] ELSE outvoted.markets END AS markets_agreed,
        CASE WHEN pair.is_agreed THEN agreed.markets ELSE [pair.market] END AS markets_alike,
        stood.standing_markets,
        stood.markets_priced = 1 AS is_lone,
        list_concat(
            [pair.observed],
            CASE
                WHEN middle.market IS NOT NULL
                    THEN list_prepend(
                        mart.observation(
                            'compared',
                            middle.source,
                            middle.property_id,
                            middle.offer_key,
                            middle.seen_sweep_id,
                            middle.seen_search_id,
                            middle.seen_offer_no
                        ),
                        list_filter(
                            outvoted.witnesses,
                            LAMBDA item: item['offer_key'] NOT IN (pair.offer_key, middle.offer_key) -- noqa: RF02,RF03
                        )
                    )
                -- One that agrees with the reference market shows that the market deviates.
                WHEN len(stood.standing_markets) > len(markets_alike) THEN stood.witnesses[:1] -- noqa: RF02
                WHEN stood.markets_priced = 1 THEN []
                ELSE
                    list_concat(
                        list_filter(
                            stood.others,
                            LAMBDA item: item['offer_key'] <> pair.offer_key -- noqa: RF02,RF03
                        ),
                        stood.witnesses
                    )
            END
        ) AS observations,
        pair.reference_offer_key,
        pair.reference_sweep_id,
        pair.reference_search_id,
        pair.reference_offer_no
    FROM placed AS pair
    INNER JOIN stood
        ON
            stood.property_id = pair.property_id
            AND stood.reference_offer_key = pair.reference_offer_key
    LEFT JOIN agreed
        ON
            agreed.property_id = pair.property_id
            AND agreed.reference_offer_key = pair.reference_offer_key
            AND agreed.side = pair.side
    LEFT JOIN outvoted
        ON
            outvoted.property_id = pair.property_id
            AND outvoted.reference_offer_key = pair.reference_offer_key
    LEFT JOIN placed AS middle
        ON
            middle.property_id = outvoted.property_id
            AND middle.offer_key = outvoted.middle.offer_key
            AND middle.reference_offer_key = outvoted.reference_offer_key
            AND middle.currency = pair.currency
    WHERE
        CASE
            WHEN middle.market IS NOT NULL
                THEN
                    pair.is_met
                    AND NOT (pair.is_agreed AND pair.side = outvoted.side)
                    AND 100 * abs(pair.all_in::DOUBLE / middle.all_in::DOUBLE - 1) > pair.disparity_pct
                    AND abs(pair.all_in - middle.all_in)
                    > mart.tolerance(middle.all_in, pair.tolerance_pct, pair.minor_unit)
            -- Where its currency is not theirs, fees that deviate in the other direction deviate from all others, too.
            ELSE pair.is_found AND outvoted.side IS DISTINCT FROM pair.side
        END

    UNION ALL BY NAME

    SELECT
        outvoted.middle.source,
        outvoted.property_id,
        outvoted.middle.reference_market AS market,
        outvoted.middle.product_type,
        outvoted.middle.check_in,
        outvoted.middle.nights,
        outvoted.middle.party,
        outvoted.middle.reference_currency AS currency,
        outvoted.middle.room_id,
        outvoted.middle.board_id,
        outvoted.middle.policy_key,
        outvoted.reference_offer_key AS offer_key,
        outvoted.middle.reference_market,
        outvoted.middle.reference_total AS total,
        outvoted.middle.reference_total AS reference_converted,
        -100 * outvoted.middle.gap_pct / (100 + outvoted.middle.gap_pct) AS gap_pct,
        outvoted.middle.fees_compared,
        outvoted.middle.reference_answered AS all_in,
        outvoted.middle.reference_answered,
        outvoted.middle.reference_answered AS reference_all_in,
        outvoted.middle.market AS compared_with,
        outvoted.middle.all_in AS compared_answered,
        CASE
            WHEN outvoted.middle.currency_basis = 'same' THEN outvoted.middle.all_in
            ELSE
                mart.converted(
                    outvoted.middle.all_in,
                    outvoted.middle.reference_total,
                    outvoted.middle.total,
                    unit.minor_unit
                )
        END AS compared_all_in,
        outvoted.middle.currency AS compared_currency,
        1 / outvoted.middle.rate AS rate,
        outvoted.middle.rate_date,
        outvoted.markets AS markets_agreed,
        outvoted.markets AS markets_alike,
        [] AS standing_markets,
        FALSE AS is_lone,
        list_concat(
            outvoted.observations,
            list_filter(
                outvoted.witnesses,
                LAMBDA item: NOT list_contains( -- noqa: RF02,RF03
                    list_transform(outvoted.observations, LAMBDA shown: shown['offer_key']), -- noqa: RF02,RF03
                    item['offer_key'] -- noqa: RF02,RF03
                )
            )
        ) AS observations,
        outvoted.reference_offer_key,
        outvoted.middle.reference_sweep_id,
        outvoted.middle.reference_search_id,
        outvoted.middle.reference_offer_no
    FROM outvoted
    LEFT JOIN ref.currency AS unit ON unit.currency = outvoted.middle.reference_currency
),

sized AS (
    SELECT
        deviating.*,
        (deviating.all_in - deviating.compared_all_in)::DECIMAL(18, 4) AS amount,
        100 * amount::DOUBLE / deviating.compared_all_in::DOUBLE AS size_pct -- noqa: RF02
    FROM deviating
)

SELECT
    'all_in_gap' AS rule,
    9 AS rule_version,
    mart.subject_key('all_in_gap', concat_ws('|', found.source, found.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(found.size_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    found.size_pct,
    found.amount,
    found.source,
    found.property_id,
    found.market,
    found.product_type,
    found.check_in,
    found.nights,
    found.party,
    found.currency,
    found.room_id,
    found.board_id,
    found.policy_key,
    found.reference_market,
    found.total,
    found.reference_converted,
    found.gap_pct,
    found.fees_compared,
    found.all_in,
    found.reference_answered,
    found.reference_all_in,
    format(
        '{} pays {:,.2f} {} with fees against {} in {}{}: {:+.1f}%; without fees the prices meet.{}',
        found.market,
        found.all_in::DOUBLE,
        found.currency,
        CASE
            WHEN found.compared_currency = found.currency THEN format('{:,.2f}', found.compared_answered::DOUBLE)
            ELSE format('{:,.2f} {}', found.compared_answered::DOUBLE, found.compared_currency)
        END,
        found.compared_with,
        CASE
            WHEN found.compared_currency = found.currency THEN ''
            ELSE format(' ({:,.2f} {} at the rate of the two totals)', found.compared_all_in::DOUBLE, found.currency)
        END,
        found.size_pct,
        CASE
            WHEN len(found.markets_agreed) > 0 THEN format(' {} other markets agree.', len(found.markets_agreed))
            WHEN len(found.standing_markets) > len(found.markets_alike) THEN ''
            WHEN found.is_lone THEN ' No third price with fees shows which of the two deviates.'
            WHEN len(found.markets_alike) = 1
                THEN ' The other markets do not agree with each other: one of them may deviate instead.'
            ELSE
                format(
                    ' Prices with fees in {} markets ({}) differ alike from {}: which side deviates is unknown.',
                    len(found.markets_alike),
                    array_to_string(found.markets_alike, ', '),
                    CASE
                        WHEN len(found.standing_markets) = 1 THEN 'the one in ' || found.standing_markets[1]
                        ELSE
                            format(
                                'those in {} ({})',
                                len(found.standing_markets),
                                array_to_string(found.standing_markets, ', ')
                            )
                    END
                )
        END
    ) AS finding,
    list_append(
        found.observations,
        mart.observation(
            'reference',
            found.source,
            found.property_id,
            found.reference_offer_key,
            found.reference_sweep_id,
            found.reference_search_id,
            found.reference_offer_no
        )
    ) AS evidence,
    mart.conversion(found.compared_currency, found.currency, found.rate, found.rate_date) AS fx,
    found.compared_with,
    found.compared_answered,
    found.compared_all_in,
    found.compared_currency
FROM sized AS found
CROSS JOIN ref.analysis AS analysis
