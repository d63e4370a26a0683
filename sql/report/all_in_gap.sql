-- One row per detail offer whose total equals the reference market's, but whose price with mandatory fees does not.
-- size_pct: Gap of the all-in prices, in percent of the reference market's; > 0: the market is dearer.
-- amount: Gap of the all-in prices, in currency; > 0: the market is dearer.
-- fees_compared: Number of mandatory fees known in both answers.
-- all_in: Total + mandatory fees in the market, in currency.
-- reference_answered: Total + mandatory fees in the reference market, in its own currency.
-- reference_all_in: reference_answered in currency, at the rate that makes the totals equal, not a reference rate.
-- severity: `low`, `medium` or `high`, by size_pct.
-- A rate that has moved must not look like a fee: at the reference rate, totals meet if they do at any rate of the last
-- eight days, and fees must differ at all of them. Otherwise totals that meet by chance would turn fees that follow the
-- price into a gap. If the reference market's total deviates from most markets, its fees are no valid reference.
WITH equal AS (
    SELECT
        pair.*,
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
        analysis.medium_pct,
        analysis.high_pct,
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

found AS MATERIALIZED (
    SELECT equal.*
    FROM equal
    WHERE
        equal.is_met
        AND abs(equal.fee_gap) > mart.tolerance(equal.reference_equal, equal.tolerance_pct, equal.minor_unit)
        AND abs(equal.fee_gap_pct) > equal.disparity_pct
        AND abs(equal.least_gap) > equal.disparity_pct / 100 * equal.reference_equal::DOUBLE
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
        ) AS markets_apart
    FROM mart.market_parity AS pair
    SEMI JOIN found
        ON
            found.property_id = pair.property_id
            AND found.reference_offer_key = pair.reference_offer_key
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
)

SELECT
    'all_in_gap' AS rule,
    7 AS rule_version,
    mart.subject_key('all_in_gap', concat_ws('|', pair.source, pair.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(pair.fee_gap_pct, pair.medium_pct, pair.high_pct) AS severity,
    pair.fee_gap_pct AS size_pct,
    pair.fee_gap AS amount,
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
    pair.reference_market,
    pair.total,
    pair.reference_converted,
    pair.gap_pct,
    pair.fees_compared,
    pair.all_in,
    pair.reference_answered,
    pair.reference_equal AS reference_all_in,
    format(
        '{} pays {:,.2f} {} with fees against {} in {}{}: {:+.1f}%; without fees the prices meet.',
        pair.market,
        pair.all_in::DOUBLE,
        pair.currency,
        CASE
            WHEN pair.currency_basis = 'same' THEN format('{:,.2f}', pair.reference_answered::DOUBLE)
            ELSE format('{:,.2f} {}', pair.reference_answered::DOUBLE, pair.reference_currency)
        END,
        pair.reference_market,
        CASE
            WHEN pair.currency_basis = 'same' THEN ''
            ELSE format(' ({:,.2f} {} at the rate of the two totals)', pair.reference_equal::DOUBLE, pair.currency)
        END,
        pair.fee_gap_pct
    ) AS finding,
    [
        mart.observation(
            'market',
            pair.source,
            pair.property_id,
            pair.offer_key,
            pair.seen_sweep_id,
            pair.seen_search_id,
            pair.seen_offer_no
        ),
        mart.observation(
            'reference',
            pair.source,
            pair.property_id,
            pair.reference_offer_key,
            pair.reference_sweep_id,
            pair.reference_search_id,
            pair.reference_offer_no
        )
    ] AS evidence,
    mart.conversion(pair.reference_currency, pair.currency, pair.rate, pair.rate_date) AS fx
FROM found AS pair
INNER JOIN voted
    ON
        voted.property_id = pair.property_id
        AND voted.reference_offer_key = pair.reference_offer_key
WHERE 2 * voted.markets_apart <= voted.markets_compared
