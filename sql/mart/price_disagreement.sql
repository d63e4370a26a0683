-- One row per pair of exact prices of each offer of the reference market with which at least one market disagrees.
-- unexplained_pct: Part of gap_pct that no reference rate of eight days explains.
-- to_rate: Units of currency per euro on the day of rate_date; NULL: the currencies are the same.
-- from_rate: Units of reference_currency per euro on the day of rate_date; NULL: the currencies are the same.
-- is_beyond: Whether no reference rate of 31 days explains the gap.
-- is_apart: Whether the market deviates.
-- is_standing: Whether the market agrees with the reference market.
-- is_best: Whether the pair is in one currency, or no pair of the reference offer is.
-- agreed_pct: Largest difference in percent between prices that agree with each other.
-- alike_pct: Largest difference in percent between prices of one currency that count as alike.
-- level_pct: Lower median price of markets that deviate in the same direction, in percent of the reference price.
-- from_level: Difference from that price, as a share of it; NULL: no market deviates in the same direction.
-- is_leaning: Whether the market counts with those that deviate: it is apart, or at their level.
-- is_alike: Whether a converted price is at the level of those that deviate in the reference market's currency.
-- observation: Observation of the market's price.
-- reference_observation: Observation of the reference market's price.
-- as_witness: Observation of the market's price, in the role of another market's.
-- Few prices deviate, so only offers compared with the same reference offer are examined further.
-- A moved rate is not a price: at the reference rate, only prices beyond all rates of 31 days deviate; a rate that the
-- supplier has ignored for weeks is a mark-up. If other markets were answered in the currency of such a market, eight
-- days are enough.
WITH apart AS (
    SELECT DISTINCT
        parity.property_id,
        parity.reference_offer_key
    FROM mart.market_parity AS parity
    CROSS JOIN ref.analysis AS analysis
    WHERE
        parity.match_grade = 'exact'
        AND parity.currency_basis <> 'supplier_rate'
        AND NOT mart.is_level(parity.verdict, parity.gap_pct, analysis.disparity_pct)
),

pair AS (
    SELECT
        parity.*,
        moved.to_rate,
        moved.from_rate,
        analysis.tolerance_pct + analysis.reference_rate_pct
        -- One day's rate does not tell how far rates move.
        + CASE WHEN moved.month_since >= moved.rate_date THEN analysis.reference_rate_pct ELSE 0 END AS allowed_pct,
        CASE WHEN parity.currency_basis = 'same' THEN 0 ELSE allowed_pct END AS of_rate_pct,
        CASE
            WHEN moved.sweep_id IS NULL THEN parity.gap_pct
            ELSE
                100 * greatest(parity.total::DOUBLE - parity.reference_total::DOUBLE * moved.highest_rate, 0)
                / (parity.reference_total::DOUBLE * moved.highest_rate)
                + 100 * least(parity.total::DOUBLE - parity.reference_total::DOUBLE * moved.lowest_rate, 0)
                / (parity.reference_total::DOUBLE * moved.lowest_rate)
        END AS unexplained_pct,
        coalesce(
            NOT mart.fits_rates(
                parity.total,
                parity.reference_total,
                moved.lowest_month_rate,
                moved.highest_month_rate,
                allowed_pct
            ),
            TRUE
        ) AS is_beyond,
        min(parity.market) OVER in_currency < max(parity.market) OVER in_currency AS has_others,
        NOT mart.is_level(parity.verdict, parity.gap_pct, analysis.disparity_pct)
        AND CASE WHEN has_others THEN abs(unexplained_pct) > of_rate_pct ELSE is_beyond END AS is_apart,
        -- A price that only a rate of the month explains neither deviates nor agrees.
        NOT is_apart
        AND (
            parity.verdict = 'meet'
            OR abs(unexplained_pct) <= of_rate_pct + analysis.disparity_pct
        ) AS is_standing,
        parity.currency_basis = 'same' OR NOT bool_or(parity.currency_basis = 'same') OVER (
            PARTITION BY parity.source, parity.property_id, parity.reference_offer_key
        ) AS is_best,
        analysis.disparity_pct + analysis.tolerance_pct AS alike_pct,
        analysis.disparity_pct
        + analysis.tolerance_pct
        + CASE WHEN parity.currency_basis = 'same' THEN 0 ELSE analysis.reference_rate_pct END AS agreed_pct,
        mart.observation(
            'market',
            parity.source,
            parity.property_id,
            parity.offer_key,
            parity.seen_sweep_id,
            parity.seen_search_id,
            parity.seen_offer_no
        ) AS observation,
        mart.observation(
            'reference',
            parity.source,
            parity.property_id,
            parity.reference_offer_key,
            parity.reference_sweep_id,
            parity.reference_search_id,
            parity.reference_offer_no
        ) AS reference_observation
    FROM mart.market_parity AS parity
    SEMI JOIN apart
        ON
            apart.property_id = parity.property_id
            AND apart.reference_offer_key = parity.reference_offer_key
    LEFT JOIN mart.cross_rate AS moved
        ON
            moved.sweep_id = parity.seen_sweep_id
            AND moved.to_currency = parity.currency
            AND moved.from_currency = parity.reference_currency
    CROSS JOIN ref.analysis AS analysis
    WHERE
        parity.match_grade = 'exact'
        AND parity.currency_basis <> 'supplier_rate'
    WINDOW
        in_currency AS (
            PARTITION BY parity.source, parity.property_id, parity.reference_offer_key, parity.currency
        )
),

-- What the deviating markets have in common: the lower median of their price for 100 in the reference market.
leaning AS (
    SELECT
        pair.source,
        pair.property_id,
        pair.reference_offer_key,
        quantile_disc(100 + pair.gap_pct, 0.5) FILTER (WHERE pair.gap > 0) AS dearer,
        quantile_disc(100 + pair.gap_pct, 0.5) FILTER (WHERE pair.gap < 0) AS cheaper
    FROM pair
    WHERE pair.is_best AND pair.is_apart
    GROUP BY pair.source, pair.property_id, pair.reference_offer_key
)

-- If no other market shares the reference market's currency, a market at the level of those that deviate counts with
-- them, though a rate may still explain its price: otherwise the first one to pass the bound would be blamed for what
-- the reference market does.
SELECT
    pair.* EXCLUDE (allowed_pct, of_rate_pct, has_others),
    CASE WHEN pair.gap > 0 THEN leaning.dearer ELSE leaning.cheaper END AS level_pct,
    abs((100 + pair.gap_pct) / level_pct - 1) AS from_level,
    pair.is_best
    AND (
        pair.is_apart
        OR (
            pair.currency_basis <> 'same'
            AND coalesce(from_level <= pair.alike_pct / 100, FALSE)
        )
    ) AS is_leaning,
    NOT pair.is_best
    AND pair.is_apart
    AND pair.is_beyond
    AND coalesce(from_level <= pair.agreed_pct / 100, FALSE) AS is_alike,
    mart.observation(
        'witness',
        pair.source,
        pair.property_id,
        pair.offer_key,
        pair.seen_sweep_id,
        pair.seen_search_id,
        pair.seen_offer_no
    ) AS as_witness
FROM pair
LEFT JOIN leaning
    ON
        leaning.source = pair.source
        AND leaning.property_id = pair.property_id
        AND leaning.reference_offer_key = pair.reference_offer_key
