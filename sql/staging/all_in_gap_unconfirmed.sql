-- One row per all_in_gap that tonight's findings do not confirm, and other offer of its evidence on sale tonight.
-- Only fees that both answers state are counted, as in mart.all_in_parity.
-- other_key: Offer key of the other one.
-- side_found: 1 if the price with fees is still on the side on which it was found, -1 if it has crossed the other one.
-- is_met: The two prices with fees differ by at most disparity_pct or the tolerance.
-- is_level: The two totals still meet, in two currencies at the reference rate of when the finding was last flagged.
-- is_changed: The finding's own price with fees has changed since.
WITH priced AS MATERIALIZED (
    SELECT
        evidence.flag_id,
        evidence.market = offer.market AS is_own,
        evidence.size_pct,
        evidence.amount,
        evidence.fx,
        offer.source,
        offer.offer_key,
        offer.currency,
        offer.total,
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
    FROM night.flag_unconfirmed AS evidence
    CROSS JOIN night.sweep AS sweep
    INNER JOIN state.offer_open AS offer
        ON
            offer.source = evidence.item.source
            AND offer.property_id = evidence.item.property_id
            AND offer.offer_key = evidence.item.offer_key
    LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
    WHERE
        evidence.rule = 'all_in_gap'
        AND offer.is_offered
        AND offer.seen_sweep_id = sweep.sweep_id
),

pair AS (
    SELECT
        own.flag_id,
        own.source,
        own.offer_key,
        other.offer_key AS other_key,
        own.size_pct,
        own.amount,
        own.currency <> other.currency AS is_converted,
        list_sum([
            mart.fee_compared(own.resort_fee, own.is_all, other.resort_fee, other.is_all),
            mart.fee_compared(own.child_resort_fee, own.is_all, other.child_resort_fee, other.is_all),
            mart.fee_compared(own.city_taxes, own.is_all, other.city_taxes, other.is_all),
            mart.fee_compared(own.hotel_service_fee, own.is_all, other.hotel_service_fee, other.is_all)
        ])::DOUBLE + own.total::DOUBLE AS all_in,
        list_sum([
            mart.fee_compared(other.resort_fee, other.is_all, own.resort_fee, own.is_all),
            mart.fee_compared(other.child_resort_fee, other.is_all, own.child_resort_fee, own.is_all),
            mart.fee_compared(other.city_taxes, other.is_all, own.city_taxes, own.is_all),
            mart.fee_compared(other.hotel_service_fee, other.is_all, own.hotel_service_fee, own.is_all)
        ])::DOUBLE + other.total::DOUBLE AS other_all_in,
        own.total::DOUBLE / other.total::DOUBLE AS of_totals,
        CASE
            WHEN NOT is_converted THEN 1
            WHEN own.fx.from_currency = other.currency THEN own.fx.rate::DOUBLE
        END AS rate
    FROM priced AS own
    INNER JOIN priced AS other
        ON
            other.flag_id = own.flag_id
            AND NOT other.is_own
    WHERE own.is_own
),

compared AS (
    SELECT
        pair.*,
        100 * (pair.all_in / pair.other_all_in / CASE WHEN pair.is_converted THEN pair.of_totals ELSE 1 END - 1)
            AS gap_pct
    FROM pair
)

SELECT
    compared.flag_id,
    compared.source,
    compared.offer_key,
    compared.other_key,
    (sign(compared.gap_pct) * sign(compared.size_pct))::INTEGER AS side_found,
    abs(compared.gap_pct) <= greatest(analysis.disparity_pct, analysis.tolerance_pct) AS is_met,
    100 * abs(compared.of_totals / compared.rate - 1)
    <= analysis.disparity_pct
    + analysis.tolerance_pct
    + CASE WHEN compared.is_converted THEN analysis.reference_rate_pct ELSE 0 END AS is_level,
    100 * abs(compared.all_in / (compared.amount::DOUBLE * (1 + 100 / compared.size_pct)) - 1) > analysis.tolerance_pct
        AS is_changed
FROM compared
CROSS JOIN ref.analysis AS analysis
WHERE
    compared.all_in IS NOT NULL
    AND compared.rate IS NOT NULL
