-- One row per detail offer and its exact pair in the reference market: prices including what is paid at the property.
-- Only fees that both answers state are counted; a fee that one of them does not state is unknown, not 0. It is 0 only
-- if that answer's excluded charges are the sum of the fees that it states, but for rounding: nothing is left for it.
-- fees_compared: Number of mandatory fees known in both answers: resort fee, child fee, city tax, service fee.
-- fees: Sum of the compared fees in the market, in currency.
-- reference_fees: Sum of the compared fees in the reference market, in reference_currency.
-- all_in: total + fees, in currency.
-- reference_all_in: Reference total + reference_fees, converted to currency at the rate of currency_basis.
-- all_in_gap: all_in - reference_all_in, in currency; > 0: the market is dearer.
-- all_in_gap_pct: all_in_gap in percent of reference_all_in; > 0: the market is dearer.
-- all_in_verdict: `win`, `meet` or `lose`, judged by the all-in prices.
-- rate: Units of currency per unit of reference_currency, on currency_basis; NULL: the currencies are the same.
WITH fee AS (
    SELECT
        offer.property_id,
        offer.offer_key,
        offer.resort_fee,
        offer.child_resort_fee,
        offer.city_taxes,
        offer.hotel_service_fee,
        mart.states_all_fees(
            offer.excluded_charges,
            offer.resort_fee,
            offer.child_resort_fee,
            offer.city_taxes,
            offer.hotel_service_fee,
            unit.minor_unit
        ) AS is_all
    FROM mart.offer_latest AS offer
    LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
    WHERE offer.source = 'detail'
),

paired AS (
    SELECT
        parity.*,
        unit.minor_unit,
        -- A fee that is unknown on one side is NULL on both.
        mart.fee_compared(fee.resort_fee, fee.is_all, there.resort_fee, there.is_all) AS resort_fee,
        mart.fee_compared(fee.child_resort_fee, fee.is_all, there.child_resort_fee, there.is_all) AS child_resort_fee,
        mart.fee_compared(fee.city_taxes, fee.is_all, there.city_taxes, there.is_all) AS city_taxes,
        mart.fee_compared(
            fee.hotel_service_fee, fee.is_all, there.hotel_service_fee, there.is_all
        ) AS hotel_service_fee,
        mart.fee_compared(there.resort_fee, there.is_all, fee.resort_fee, fee.is_all) AS resort_fee_there,
        mart.fee_compared(
            there.child_resort_fee, there.is_all, fee.child_resort_fee, fee.is_all
        ) AS child_resort_fee_there,
        mart.fee_compared(there.city_taxes, there.is_all, fee.city_taxes, fee.is_all) AS city_taxes_there,
        mart.fee_compared(
            there.hotel_service_fee, there.is_all, fee.hotel_service_fee, fee.is_all
        ) AS hotel_service_fee_there
    FROM mart.market_parity AS parity
    INNER JOIN fee ON fee.property_id = parity.property_id AND fee.offer_key = parity.offer_key
    INNER JOIN fee AS there
        ON
            -- With `=`, DuckDB would first join every offer of a property with every other one.
            there.property_id IS NOT DISTINCT FROM parity.property_id
            AND there.offer_key = parity.reference_offer_key
    LEFT JOIN ref.currency AS unit ON unit.currency = parity.currency
    WHERE
        parity.source = 'detail'
        AND parity.match_grade = 'exact'
),

added AS (
    SELECT
        paired.*,
        (
            (paired.resort_fee IS NOT NULL)::INTEGER + (paired.child_resort_fee IS NOT NULL)::INTEGER
            + (paired.city_taxes IS NOT NULL)::INTEGER + (paired.hotel_service_fee IS NOT NULL)::INTEGER
        ) AS fees_compared,
        (
            coalesce(paired.resort_fee, 0) + coalesce(paired.child_resort_fee, 0)
            + coalesce(paired.city_taxes, 0) + coalesce(paired.hotel_service_fee, 0)
        )::DECIMAL(18, 4) AS fees,
        (
            coalesce(paired.resort_fee_there, 0) + coalesce(paired.child_resort_fee_there, 0)
            + coalesce(paired.city_taxes_there, 0) + coalesce(paired.hotel_service_fee_there, 0)
        )::DECIMAL(18, 4) AS reference_fees,
        (paired.total + fees)::DECIMAL(18, 4) AS all_in,
        (paired.reference_total + reference_fees)::DECIMAL(18, 4) AS reference_answered
    FROM paired
),

-- DuckDB 1.5 does not find a name of the same level as an argument of `converted`.
compared AS (
    SELECT
        added.*,
        CASE added.currency_basis
            WHEN 'same' THEN added.reference_answered
            -- From the market's own two totals; the second follows from the rate.
            WHEN 'supplier_rate'
                THEN
                    mart.converted(
                        added.reference_answered,
                        added.total,
                        try_cast(round(added.total::DOUBLE / added.rate, 4) AS DECIMAL(18, 4)),
                        added.minor_unit
                    )
            ELSE
                mart.converted(added.reference_answered, exchange.to_rate, exchange.from_rate, added.minor_unit)
        END AS reference_all_in
    FROM added
    LEFT JOIN mart.cross_rate AS exchange
        ON
            exchange.sweep_id = added.seen_sweep_id
            AND exchange.to_currency = added.currency
            AND exchange.from_currency = added.reference_currency
)

SELECT
    compared.match_grade,
    compared.source,
    compared.offer_key,
    compared.reference_offer_key,
    compared.property_id,
    compared.market,
    compared.reference_market,
    compared.product_type,
    compared.check_in,
    compared.nights,
    compared.party,
    compared.room_id,
    compared.board_id,
    compared.policy_key,
    compared.currency,
    compared.reference_currency,
    compared.currency_basis,
    compared.total,
    compared.reference_total,
    compared.reference_converted,
    compared.gap,
    compared.gap_pct,
    compared.verdict,
    compared.fees_compared,
    compared.fees,
    compared.reference_fees,
    compared.all_in,
    compared.reference_all_in,
    compared.rate,
    compared.rate_date,
    compared.seen_sweep_id,
    compared.seen_search_id,
    compared.seen_offer_no,
    compared.reference_sweep_id,
    compared.reference_search_id,
    compared.reference_offer_no,
    (compared.all_in - compared.reference_all_in)::DECIMAL(18, 4) AS all_in_gap,
    100 * all_in_gap::DOUBLE / compared.reference_all_in::DOUBLE AS all_in_gap_pct,
    CASE
        WHEN
            abs(all_in_gap)
            <= mart.tolerance(
                compared.reference_all_in,
                mart.tolerance_of(compared.currency_basis, analysis.tolerance_pct, analysis.reference_rate_pct),
                compared.minor_unit
            )
            THEN 'meet'
        WHEN all_in_gap < 0 THEN 'win'
        ELSE 'lose'
    END AS all_in_verdict
FROM compared
CROSS JOIN ref.analysis AS analysis
WHERE compared.fees_compared > 0
