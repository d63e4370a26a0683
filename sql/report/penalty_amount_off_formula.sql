-- One row per finding: a detail offer on sale whose stated cancellation penalty does not match its own terms.
-- size_pct: Deviation of the stated amount, in percent of formula_amount, for the penalty that is off most.
-- amount: stated_amount - formula_amount of that penalty, in currency; > 0: more than its terms say.
-- severity: `low`, `medium` or `high`, by size_pct; `high` if the terms amount to 0.
-- penalty_no: Position of that penalty in the answer, from 0.
-- stated_amount: Amount of that penalty as stated, in currency.
-- formula_amount: Amount computed from its percentage, nights and the total, in currency.
-- formula_rule: `nights` or `percentage`; see pipeline/domain/penalties.py.
-- window_hours: Window of that penalty: hours before check-in from which it applies.
-- penalty_pct: Percentage of the total, or of the price of penalty_nights, that it charges.
-- penalty_nights: Number of nights that it charges.
-- penalties_off: Number of penalties of the offer that do not match their terms.
WITH stated AS (
    SELECT
        offer.*,
        penalty.penalty_no,
        penalty.window_hours,
        penalty.penalty_pct,
        penalty.penalty_nights,
        penalty.amount AS stated_amount,
        CASE WHEN penalty.penalty_nights > 0 THEN 'nights' ELSE 'percentage' END AS formula_rule,
        try_cast(
            offer.total * penalty.penalty_pct / 100
            * CASE WHEN penalty.penalty_nights > 0 THEN penalty.penalty_nights / offer.nights ELSE 1 END
            AS DECIMAL(18, 4)
        ) AS formula_amount,
        try_cast(
            offer.total * penalty.penalty_pct / 100
            * CASE
                WHEN penalty.penalty_nights > 0 THEN least(penalty.penalty_nights, offer.nights) / offer.nights ELSE 1
            END
            AS DECIMAL(18, 4)
        ) AS capped_amount
    FROM state.detail_penalty AS penalty
    INNER JOIN mart.offer_latest AS offer
        ON
            offer.property_id = penalty.property_id
            AND offer.offer_key = penalty.offer_key
            AND offer.source = 'detail'
    WHERE penalty.amount IS NOT NULL AND penalty.penalty_pct IS NOT NULL AND offer.total > 0
),

compared AS (
    SELECT
        stated.*,
        (stated.stated_amount - stated.formula_amount)::DECIMAL(18, 4) AS difference,
        100 * abs(difference)::DOUBLE / nullif(stated.formula_amount, 0)::DOUBLE AS size_pct
    FROM stated
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN ref.currency AS unit ON unit.currency = stated.currency
    WHERE
        abs(stated.stated_amount - stated.formula_amount)
        > mart.tolerance(stated.formula_amount, analysis.tolerance_pct, unit.minor_unit)
        AND abs(stated.stated_amount - stated.capped_amount)
        > mart.tolerance(stated.capped_amount, analysis.tolerance_pct, unit.minor_unit)
),

worst AS (
    SELECT
        compared.*,
        count(*) OVER (PARTITION BY compared.property_id, compared.offer_key) AS penalties_off
    FROM compared
    QUALIFY
        row_number() OVER (
            PARTITION BY compared.property_id, compared.offer_key
            ORDER BY abs(compared.difference) DESC, compared.penalty_no ASC
        ) = 1
)

SELECT
    'penalty_amount_off_formula' AS rule,
    2 AS rule_version,
    mart.subject_key(rule, concat_ws('|', worst.source, worst.property_id, worst.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(coalesce(worst.size_pct, 100), analysis.medium_pct, analysis.high_pct) AS severity,
    worst.size_pct,
    worst.difference AS amount,
    worst.source,
    worst.property_id,
    worst.market,
    worst.product_type,
    worst.check_in,
    worst.nights,
    worst.party,
    worst.currency,
    format(
        'The stated cancellation amount is {:,.2f} {}, but {:g}%{} of {:,.2f} is {:,.2f}.',
        worst.stated_amount::DOUBLE, coalesce(worst.currency, ''), worst.penalty_pct,
        coalesce(format(' of {:g} of {} nights', nullif(worst.penalty_nights, 0), worst.nights), ''),
        worst.total::DOUBLE, worst.formula_amount::DOUBLE
    ) AS finding,
    [
        mart.observation(
            'offer',
            worst.source,
            worst.property_id,
            worst.offer_key,
            worst.seen_sweep_id,
            worst.seen_search_id,
            worst.seen_offer_no
        )
    ] AS evidence,
    mart.conversion(NULL, NULL, NULL, NULL) AS fx,
    worst.offer_key,
    worst.room_id,
    worst.board_id,
    worst.policy_key,
    worst.total,
    worst.penalty_no,
    worst.stated_amount,
    worst.formula_amount,
    worst.formula_rule,
    worst.window_hours,
    worst.penalty_pct,
    worst.penalty_nights,
    worst.penalties_off
FROM worst
CROSS JOIN ref.analysis AS analysis
