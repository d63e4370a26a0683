-- One row per source, market, product type, lead days and day of a decision: book now, or wait?
-- The answer is based on stays of that market and product type that had begun by that day, and on decisions taken the
-- same number of days before check-in: see mart.waiting_outcome. Rows with a check-in are past decisions with their
-- outcome (a backtest: the answer uses nothing that was learnt later); rows without one are last night's answers.
-- check_in: Check-in that a past decision was about; NULL: the decision is still to be made.
-- check_ins: Number of check-in days that the answer is based on.
-- stays: Number of stays that it is based on: properties, summed over the check-in days.
-- offers: Number of offers that it is based on.
-- paid_share: Share of offers for which waiting paid off: a lower total followed.
-- cost_share: Share of offers for which it cost: no lower total, and gone or dearer when last answered.
-- lower_pct: Mean decrease to the lowest later total of the offers for which waiting paid off, in percent (geometric).
-- balance: paid_share - cost_share, shrunk towards 0 by two stays of opposite outcome; > 0: waiting usually paid off.
-- balance_lowest: Lower bound of balance: 95% confidence interval over stays.
-- balance_highest: Upper bound of balance: 95% confidence interval over stays.
-- answer: `wait` or `book now`: 0 is outside the interval; `either`: within it; `not known`: fewer than 20 stays.
-- actual_offers: Number of offers of the check-in that a past decision was about; NULL: still to be made.
-- actual_paid_share: Share of actual_offers for which waiting paid off in the end.
-- actual_cost_share: Share of actual_offers for which waiting cost in the end.
-- actual_balance: actual_paid_share - actual_cost_share; > 0: waiting paid off more often.
-- is_within: Whether actual_balance is within the interval, widened for the sampling error of the actual stays.
WITH outcome AS (
    SELECT * FROM mart.waiting_outcome
),

asked AS (
    SELECT
        outcome.source,
        outcome.market,
        outcome.product_type,
        outcome.lead_days,
        outcome.decided_on,
        outcome.check_in
    FROM outcome

    UNION ALL BY NAME

    SELECT DISTINCT
        outcome.source,
        outcome.market,
        outcome.product_type,
        outcome.lead_days,
        (SELECT max(sweep.snapshot_date) FROM mart.sweep AS sweep) AS decided_on,
        NULL::DATE AS check_in
    FROM outcome
),

known AS (
    SELECT
        asked.source,
        asked.market,
        asked.product_type,
        asked.lead_days,
        asked.decided_on,
        asked.check_in,
        count(before.check_in) AS check_ins,
        coalesce(sum(before.stays), 0)::BIGINT AS stays,
        coalesce(sum(before.offers), 0)::BIGINT AS offers,
        sum(before.paid)::BIGINT AS paid,
        sum(before.cost)::BIGINT AS cost,
        round(sum(before.lower_pct * before.paid) / nullif(sum(before.paid), 0), 6) AS lower_pct,
        sum(before.balance_square)::DOUBLE AS balance_square,
        sum(before.balance_offers)::DOUBLE AS balance_offers,
        sum(before.offers_square)::DOUBLE AS offers_square
    FROM asked
    LEFT JOIN outcome AS before
        ON
            before.source = asked.source
            AND before.market = asked.market
            AND before.product_type = asked.product_type
            AND before.lead_days = asked.lead_days
            AND before.check_in <= asked.decided_on
    GROUP BY ALL
),

-- The balance is a ratio of sums, with its variance over stays; `spread` is the variance of a stay's share of offers.
balanced AS (
    SELECT
        known.*,
        known.offers::DOUBLE / nullif(known.stays, 0) AS mean_offers,
        (known.stays + 2) * mean_offers AS all_offers,
        (known.paid - known.cost) / all_offers AS balance,
        known.balance_square
        + 2 * mean_offers ** 2
        - 2 * balance * known.balance_offers
        + balance ** 2 * (known.offers_square + 2 * mean_offers ** 2) AS spread,
        sqrt(greatest(spread, 0) * (known.stays + 2) / (known.stays + 1)) / all_offers AS error
    FROM known
),

bounded AS (
    SELECT
        balanced.*,
        greatest(balanced.balance - 1.96 * balanced.error, -1) AS balance_lowest,
        least(balanced.balance + 1.96 * balanced.error, 1) AS balance_highest
    FROM balanced
)

SELECT
    bounded.source,
    bounded.market,
    bounded.product_type,
    bounded.lead_days,
    bounded.decided_on,
    bounded.check_in,
    bounded.check_ins,
    bounded.stays,
    bounded.offers,
    round(bounded.paid::DOUBLE / nullif(bounded.offers, 0), 6) AS paid_share,
    round(bounded.cost::DOUBLE / nullif(bounded.offers, 0), 6) AS cost_share,
    bounded.lower_pct,
    round(bounded.balance, 6) AS balance,
    round(bounded.balance_lowest, 6) AS balance_lowest,
    round(bounded.balance_highest, 6) AS balance_highest,
    CASE
        WHEN bounded.stays < 20 THEN 'not known'
        WHEN bounded.balance_lowest > 0 THEN 'wait'
        WHEN bounded.balance_highest < 0 THEN 'book now'
        ELSE 'either'
    END AS answer,
    actual.offers AS actual_offers,
    round(actual.paid::DOUBLE / actual.offers, 6) AS actual_paid_share,
    round(actual.cost::DOUBLE / actual.offers, 6) AS actual_cost_share,
    round((actual.paid - actual.cost)::DOUBLE / actual.offers, 6) AS actual_balance,
    abs(actual_balance - bounded.balance)
    <= 1.96 * bounded.error * sqrt(1 + (bounded.stays + 2)::DOUBLE / actual.stays) AS is_within
FROM bounded
LEFT JOIN outcome AS actual
    ON
        actual.source = bounded.source
        AND actual.market = bounded.market
        AND actual.product_type = bounded.product_type
        AND actual.lead_days = bounded.lead_days
        AND actual.check_in = bounded.check_in
