-- One row per pair of detail offers whose totals meet, where fees make a difference: how the prices with fees vote.
-- reference_answered: Total + mandatory fees in the reference market, in its own currency.
-- reference_equal: reference_answered in currency, at the rate that makes the totals equal, not a reference rate.
-- fee_gap: Gap of the prices with fees, in currency; > 0: the market is dearer.
-- fee_gap_pct: The same in percent of reference_equal.
-- is_met: Whether the totals meet; at the reference rate, at any rate of the last eight days.
-- is_near: Whether the totals, in one currency, differ by no more than disparity_pct.
-- least_gap: Gap of the fees that no rate of the last eight days explains, in currency.
-- tolerance_pct: Difference in percent up to which prices meet.
-- disparity_pct: Difference in percent beyond which prices deviate.
-- minor_unit: Decimal digits of the currency's smallest unit.
-- side: 1 if the price with fees is above the reference market's, -1 if it is below.
-- level: Price with fees as a multiple of the reference market's.
-- is_found: Whether totals meet and prices with fees do not.
-- markets_compared: Number of markets compared with the reference market, whatever their fees.
-- observations: Observations of all of these.
-- from_level: Difference from the lower median of those that deviate in one direction, as a share of it.
-- is_agreed: Whether the price agrees with those that deviate.
-- is_standing: Whether the price agrees with the reference market's.
-- observed: Observation of the market's price.
-- as_witness: Observation of the market's price, in the role of another market's.
-- A rate that has moved must not look like a fee: at the reference rate, totals meet if they do at any rate of the last
-- eight days, and fees must differ at all of them. Otherwise totals that meet by chance would turn fees that follow the
-- price into a gap. If the reference market's total deviates from most markets, its fees are no valid reference.
WITH equal AS (
    SELECT
        pair.* EXCLUDE (
            match_grade, gap, verdict, fees, reference_fees, all_in_gap, all_in_gap_pct, all_in_verdict
        ),
        (pair.reference_total + pair.reference_fees)::DECIMAL(18, 4) AS reference_answered,
        CASE
            WHEN pair.currency_basis = 'same' THEN pair.reference_all_in
            ELSE
                mart.converted(
                    pair.reference_total + pair.reference_fees, pair.total, pair.reference_total, unit.minor_unit
                )
        END AS reference_equal,
        (pair.all_in - reference_equal)::DECIMAL(18, 4) AS fee_gap,
        100 * fee_gap::DOUBLE / reference_equal::DOUBLE AS fee_gap_pct,
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
            WHEN pair.currency_basis = 'same' THEN fee_gap
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
    HAVING 2 * markets_apart <= markets_compared
)

-- Where all-in prices that differ from the reference market's in one direction lie: their lower median. A price that is
-- closer to the reference market's does not agree with them.
SELECT
    priced.*,
    voted.markets_compared,
    voted.observations,
    abs(priced.level / quantile_disc(priced.level, 0.5) FILTER (WHERE priced.is_found) OVER of_side - 1)
        AS from_level,
    -- The totals set the rate, so a converted price needs no tolerance for one.
    coalesce(
        from_level <= (priced.disparity_pct + priced.tolerance_pct) / 100
        AND (priced.is_found OR from_level < abs(priced.level - 1)),
        FALSE
    ) AS is_agreed,
    NOT is_agreed
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
