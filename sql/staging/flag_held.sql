-- One row per open flag about prices of two markets or currencies that is not confirmed tonight, but was not put right.
-- is_by_others: Only rates, or the reference market's price, have moved: it does not end even if prices meet.
-- Once the reference market's own price is found to deviate, one that was found beside it may meet it, or be one of
-- those that show it, and be as far off as before. It does not end while it deviates from the price that shows it.
-- A converted disparity would begin again once rates are back, and be a new case. It ends when prices have moved
-- towards each other by more than rates did, or meet at all rates of eight days. If no rate is known tonight, nothing
-- is known of two prices in different currencies. What was found only because the rates of its nights were loaded or
-- corrected later is not held: with these rates, it would not have been found.
WITH apart_still AS (
    -- Two prices in one currency that are still apart: with fewer markets on sale, it may be unknown which deviates,
    -- but nothing was put right. The finding ends if tonight the other one of the two is found to deviate.
    SELECT of_flag.flag_id
    FROM night.disparity_unconfirmed AS of_flag
    ANTI JOIN (
        SELECT
            finding.flag_id,
            finding.rule,
            unnest(finding.evidence) AS item
        FROM night.finding AS finding
    ) AS another
        ON
            another.rule = 'market_disparity'
            AND another.item.source = of_flag.source
            AND another.item.property_id = of_flag.property_id
            AND another.item.offer_key = CASE
                WHEN of_flag.flag_market = of_flag.reference_market THEN of_flag.reference_offer_key
                ELSE of_flag.offer_key
            END
    WHERE
        of_flag.currency_basis = 'same'
        AND NOT of_flag.is_met
        AND of_flag.side_found = 1
    GROUP BY of_flag.flag_id
),

-- Own prices that still deviate, in one currency or at all rates of 31 days, from what shows the reference market's.
beside_level AS (
    SELECT of_flag.flag_id
    FROM night.disparity_unconfirmed AS of_flag
    INNER JOIN night.disparity_found AS found
        ON
            found.is_of_reference
            AND found.source = of_flag.source
            AND found.property_id = of_flag.property_id
            AND found.reference_key = of_flag.reference_offer_key
    SEMI JOIN night.finding AS finding
        ON
            finding.rule = 'market_disparity'
            AND finding.subject_key = found.subject_key
    INNER JOIN state.offer_open AS shown
        ON
            shown.source = found.source
            AND shown.property_id = found.property_id
            AND shown.offer_key = found.compared_key
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN mart.cross_rate AS exchange
        ON
            exchange.sweep_id = sweep.sweep_id
            AND exchange.from_currency = shown.currency
            AND exchange.to_currency = of_flag.currency
    WHERE
        of_flag.flag_market = of_flag.market
        AND of_flag.market <> shown.market
        AND CASE
            WHEN shown.currency = of_flag.currency
                THEN
                    sign(of_flag.size_pct) * 100 * (of_flag.total::DOUBLE / shown.total::DOUBLE - 1)
                    > analysis.disparity_pct + analysis.tolerance_pct
            WHEN of_flag.size_pct > 0
                THEN
                    of_flag.total::DOUBLE
                    > shown.total::DOUBLE
                    * exchange.highest_month_rate
                    * (1 + (analysis.tolerance_pct + analysis.reference_rate_pct) / 100)
            ELSE
                of_flag.total::DOUBLE * (1 + (analysis.tolerance_pct + analysis.reference_rate_pct) / 100)
                < shown.total::DOUBLE * exchange.lowest_month_rate
        END
),

-- As apart_still, of two prices with fees, unless the finding's own is tonight one that outvotes the reference market.
with_fees_still AS (
    SELECT of_flag.flag_id
    FROM night.all_in_gap_unconfirmed AS of_flag
    ANTI JOIN (
        SELECT unnest(finding.evidence) AS item
        FROM night.finding AS finding
        WHERE
            finding.rule = 'all_in_gap'
            AND finding.subject_key
            = mart.subject_key(
                'all_in_gap',
                concat_ws(
                    '|',
                    finding.source,
                    list_filter(
                        finding.evidence, LAMBDA item: item['role'] = 'reference'
                    )[1].offer_key
                )
            )
    ) AS another
        ON
            another.item.role = 'market'
            AND another.item.source = of_flag.source
            AND another.item.offer_key = of_flag.offer_key
    ANTI JOIN night.finding AS other
        ON
            other.rule = 'all_in_gap'
            AND other.subject_key = mart.subject_key('all_in_gap', concat_ws('|', of_flag.source, of_flag.other_key))
    WHERE
        of_flag.is_level
        AND NOT of_flag.is_met
        AND of_flag.side_found = 1
    GROUP BY of_flag.flag_id
),

-- Converted pairs of a flag, with its market's price divided by the other's: tonight, and when last flagged. For a
-- market that was compared with another one in its currency, it is the ratio to that one; then the reference market's
-- price must be unchanged, because its earlier value is not known.
then_and_now AS (
    SELECT
        of_flag.*,
        of_flag.flag_market = of_flag.reference_market AS is_of_reference,
        CASE
            WHEN of_flag.fx IS NULL THEN of_flag.total::DOUBLE / compared.total::DOUBLE
            WHEN is_of_reference THEN of_flag.reference_total::DOUBLE / of_flag.total::DOUBLE
            ELSE of_flag.total::DOUBLE / of_flag.reference_total::DOUBLE
        END AS ratio,
        (1 + of_flag.size_pct / 100) * coalesce(of_flag.fx.rate::DOUBLE, 1) AS ratio_before,
        flagged.first_flagged_sweep_id,
        1 + (analysis.disparity_pct + analysis.tolerance_pct) / 100 AS moved_by,
        1 + (analysis.tolerance_pct + analysis.reference_rate_pct) / 100 AS allowed
    FROM night.disparity_unconfirmed AS of_flag
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    INNER JOIN state.flag_open AS flagged ON flagged.flag_id = of_flag.flag_id
    LEFT JOIN state.offer_open AS compared
        ON
            compared.source = of_flag.compared.source
            AND compared.property_id = of_flag.compared.property_id
            AND compared.offer_key = of_flag.compared.offer_key
            AND compared.seen_sweep_id = sweep.sweep_id
    LEFT JOIN state.offer_open AS reference
        ON
            reference.source = of_flag.source
            AND reference.property_id = of_flag.property_id
            AND reference.offer_key = of_flag.reference_offer_key
    WHERE
        of_flag.currency_basis = 'reference_rate'
        AND CASE
            WHEN of_flag.fx IS NULL
                THEN of_flag.flag_market = of_flag.market AND reference.valid_from <= of_flag.last_flagged_at
            WHEN is_of_reference
                THEN of_flag.fx.from_currency = of_flag.currency AND of_flag.fx.to_currency = of_flag.reference_currency
            ELSE
                of_flag.flag_market = of_flag.market
                AND of_flag.fx.from_currency = of_flag.reference_currency
                AND of_flag.fx.to_currency = of_flag.currency
        END
),

held AS (
    SELECT pair.flag_id
    FROM then_and_now AS pair
    CROSS JOIN night.sweep AS sweep
    INNER JOIN mart.cross_rate AS now
        ON
            now.sweep_id = sweep.sweep_id
            AND now.to_currency = CASE WHEN pair.is_of_reference THEN pair.reference_currency ELSE pair.currency END
            AND now.from_currency = CASE WHEN pair.is_of_reference THEN pair.currency ELSE pair.reference_currency END
    LEFT JOIN mart.cross_rate AS earlier
        ON
            earlier.sweep_id = pair.compared_sweep_id
            AND earlier.to_currency = pair.fx.to_currency
            AND earlier.from_currency = pair.fx.from_currency
    -- Of the night on which it was first found: later on, only rates may have moved.
    LEFT JOIN mart.cross_rate AS at_first
        ON
            at_first.sweep_id = pair.first_flagged_sweep_id
            AND at_first.to_currency = pair.fx.to_currency
            AND at_first.from_currency = pair.fx.from_currency
    GROUP BY pair.flag_id
    HAVING
        bool_and(
            CASE
                WHEN pair.fx IS NULL AND pair.size_pct > 0
                    THEN
                        pair.ratio > pair.moved_by
                        AND pair.ratio * pair.moved_by >= pair.ratio_before
                WHEN pair.fx IS NULL
                    THEN
                        pair.ratio * pair.moved_by < 1
                        AND pair.ratio <= pair.ratio_before * pair.moved_by
                WHEN pair.size_pct > 0
                    THEN
                        pair.ratio > now.lowest_rate * pair.allowed
                        AND pair.ratio <= now.highest_month_rate * pair.allowed
                        AND pair.ratio * pair.moved_by
                        >= pair.ratio_before * least(coalesce(now.lowest_rate / earlier.highest_rate, 1), 1)
                ELSE
                    pair.ratio * pair.allowed < now.highest_rate
                    AND pair.ratio * pair.allowed >= now.lowest_month_rate
                    AND pair.ratio
                    <= pair.ratio_before * pair.moved_by
                    * greatest(coalesce(now.highest_rate / earlier.lowest_rate, 1), 1)
            END
            -- Flags keep rates of eight decimals.
            AND NOT coalesce(
                abs(earlier.rate - pair.fx.rate::DOUBLE) > 1e-8
                AND CASE
                    WHEN pair.size_pct > 0
                        THEN
                            pair.ratio_before <= earlier.highest_rate * pair.allowed
                            AND pair.ratio_before <= at_first.highest_rate * pair.allowed
                    ELSE
                        pair.ratio_before * pair.allowed >= earlier.lowest_rate
                        AND pair.ratio_before * pair.allowed >= at_first.lowest_rate
                END,
                FALSE
            )
        )
),

-- The finding's own offer, and another one in a currency without a rate between the two: both on sale tonight.
unrated AS (
    SELECT DISTINCT own.flag_id
    FROM night.flag_unconfirmed AS own
    INNER JOIN night.flag_unconfirmed AS other ON other.flag_id = own.flag_id
    CROSS JOIN night.sweep AS sweep
    INNER JOIN night.flag_answered AS answered
        ON
            answered.flag_id = own.flag_id
            AND NOT answered.is_beside_a_former_reference
    INNER JOIN state.offer_open AS offer
        ON
            offer.source = own.item.source
            AND offer.property_id = own.item.property_id
            AND offer.offer_key = own.item.offer_key
            AND offer.market = own.market
            AND offer.seen_sweep_id = sweep.sweep_id
    INNER JOIN state.offer_open AS beside
        ON
            beside.source = other.item.source
            AND beside.property_id = other.item.property_id
            AND beside.offer_key = other.item.offer_key
            AND beside.currency <> offer.currency
            AND beside.seen_sweep_id = sweep.sweep_id
    ANTI JOIN mart.cross_rate AS exchange
        ON
            exchange.sweep_id = sweep.sweep_id
            AND exchange.from_currency = offer.currency
            AND exchange.to_currency = beside.currency
    WHERE
        own.rule IN ('market_disparity', 'fx_markup')
        AND offer.is_offered
        AND beside.is_offered
)

SELECT
    each.flag_id,
    bool_or(each.is_by_others) AS is_by_others
FROM (
    SELECT
        held.flag_id,
        TRUE AS is_by_others
    FROM held

    UNION ALL

    SELECT
        beside_level.flag_id,
        TRUE AS is_by_others
    FROM beside_level

    UNION ALL

    SELECT
        apart_still.flag_id,
        FALSE AS is_by_others
    FROM apart_still

    UNION ALL

    SELECT
        with_fees_still.flag_id,
        FALSE AS is_by_others
    FROM with_fees_still

    UNION ALL

    SELECT
        unrated.flag_id,
        FALSE AS is_by_others
    FROM unrated
) AS each
GROUP BY each.flag_id
