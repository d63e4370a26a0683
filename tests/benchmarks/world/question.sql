-- One row per question that is put to each property, and the nights on which it is: for 56 days up to its check-in.
WITH stay AS (
    SELECT
        (getvariable('first_day') + (10 + 14 * anchor.number + kind.later)::INTEGER)::DATE AS check_in,
        kind.nights::SMALLINT AS nights,
        kind.party
    FROM range((getvariable('nights') + 56) // 14 + 1) AS anchor (number)
    CROSS JOIN (
        VALUES (0, 2, '2'), (0, 1, '2'), (1, 1, '2'), (0, 2, '1'), (0, 2, '2c5-9')
    ) AS kind (later, nights, party)
),

ask (market, currency) AS (
    VALUES ('DE', 'EUR'), ('ES', 'EUR'), ('FR', 'EUR'), ('GB', 'EUR'), ('GB', 'GBP'), ('NL', 'EUR'), ('SE', 'EUR')
),

kind (operation, source, product_type) AS (
    VALUES ('multi', 'multi', 'Hotel'), ('multi', 'multi', 'Package'), ('single', 'detail', 'Hotel')
),

asked AS (
    SELECT
        kind.*,
        ask.*,
        stay.*,
        greatest(night_of(stay.check_in) - 56, 0) AS first_night,
        least(night_of(stay.check_in), getvariable('nights')) - 1 AS last_night
    FROM kind
    CROSS JOIN ask
    CROSS JOIN stay
    WHERE
        -- Other parties in one market only; packages and single searches for one stay; single searches in two markets.
        (stay.party = '2' OR (ask.currency = 'GBP' AND kind.source = 'multi' AND kind.product_type = 'Hotel'))
        AND ((stay.nights = 2 AND stay.party = '2') OR (kind.source = 'multi' AND kind.product_type = 'Hotel'))
        AND (ask.currency = 'GBP' OR ask.market = 'DE' OR kind.source = 'multi')
)

SELECT
    (row_number() OVER (ORDER BY operation, market, product_type, party, currency, nights, check_in) - 1)::INTEGER
        AS question_no,
    asked.*
FROM asked
WHERE first_night <= last_night
