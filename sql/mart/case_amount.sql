-- One row per case with findings that have an amount: what they amount to, each stay once.
-- case_id: Case, as in report.finding_case.
-- amounts: Sum over stays, each in one currency, of the middle absolute amount (the lower of two) of counted findings.
-- amount_of_one_currency: The amount if all cases have the same single currency; else NULL.
-- amount_eur: The amounts in euro at the day's reference rates, each stay in one currency; NULL: a rate is unknown.
WITH latest AS (
    SELECT max(sweep.snapshot_date) AS snapshot_date
    FROM mart.sweep AS sweep
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

-- An offer in both a list and a detail answer is one offer. A mark-up has added up its stays already: of a property,
-- it is one amount, whichever stay its evidence shows.
of_offer AS (
    SELECT
        flag.case_id,
        flag.property_id,
        flag.market,
        flag.currency,
        CASE WHEN flag.pair_currency IS NULL THEN flag.check_in END AS check_in,
        CASE WHEN flag.pair_currency IS NULL THEN flag.nights END AS nights,
        CASE WHEN flag.pair_currency IS NULL THEN flag.party END AS party,
        CASE WHEN flag.pair_currency IS NULL THEN flag.offer END AS offer,
        max(abs(flag.amount)) AS amount
    FROM mart.case_flag AS flag
    WHERE
        flag.is_counted
        AND flag.amount IS NOT NULL
        AND flag.currency IS NOT NULL
    GROUP BY ALL
),

-- The middle one, the lower of two, and not the sum: a room costs a stay once, in however many boards and policies.
of_stay AS (
    SELECT
        of_offer.case_id,
        of_offer.property_id,
        of_offer.market,
        of_offer.currency,
        of_offer.check_in,
        of_offer.nights,
        of_offer.party,
        quantile_disc(of_offer.amount, 0.5) AS amount
    FROM of_offer
    GROUP BY
        of_offer.case_id,
        of_offer.property_id,
        of_offer.market,
        of_offer.currency,
        of_offer.check_in,
        of_offer.nights,
        of_offer.party
),

-- Without a rate, readers are given the sums of all currencies: a stay in two of them would cost twice. It counts in
-- the one with the most stays of the case.
in_one_currency AS (
    SELECT
        counted.case_id,
        counted.currency,
        counted.amount
    FROM (
        SELECT
            of_stay.*,
            count(*) OVER (PARTITION BY of_stay.case_id, of_stay.currency) AS stays
        FROM of_stay
    ) AS counted
    QUALIFY
        row_number() OVER (
            PARTITION BY
                counted.case_id,
                counted.property_id,
                counted.market,
                counted.check_in,
                counted.nights,
                counted.party
            ORDER BY counted.stays DESC, counted.currency <> 'EUR' ASC, counted.currency ASC
        ) = 1
),

of_currency AS (
    SELECT
        one.case_id,
        one.currency,
        sum(one.amount)::DECIMAL(38, 4) AS amount
    FROM in_one_currency AS one
    GROUP BY one.case_id, one.currency
),

in_euro AS (
    SELECT
        of_stay.case_id,
        count(*) = count(rate.rate) AS is_known,
        -- A stay that is requested in two currencies costs once.
        max((of_stay.amount / rate.rate)::DECIMAL(38, 4)) AS amount
    FROM of_stay
    CROSS JOIN latest
    LEFT JOIN rate
        ON
            rate.currency = of_stay.currency
            AND rate.on_date = latest.snapshot_date
    GROUP BY
        of_stay.case_id, of_stay.property_id, of_stay.market, of_stay.check_in, of_stay.nights, of_stay.party
),

owed_in_euro AS (
    SELECT
        in_euro.case_id,
        CASE WHEN bool_and(in_euro.is_known) THEN sum(in_euro.amount)::DECIMAL(38, 2) END AS amount
    FROM in_euro
    GROUP BY in_euro.case_id
)

SELECT
    of_currency.case_id,
    list(
        {
            'currency': of_currency.currency,
            'amount': of_currency.amount
        }
        ORDER BY of_currency.currency
    ) AS amounts,
    -- Without a rate, amounts can be compared if all cases have the same single currency.
    CASE
        WHEN min(min(of_currency.currency)) OVER () = max(max(of_currency.currency)) OVER ()
            THEN any_value(of_currency.amount)
    END AS amount_of_one_currency,
    any_value(owed_in_euro.amount) AS amount_eur
FROM of_currency
INNER JOIN owed_in_euro ON owed_in_euro.case_id = of_currency.case_id
GROUP BY of_currency.case_id
