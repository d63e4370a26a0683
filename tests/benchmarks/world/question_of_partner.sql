-- One row per question that a partner puts to each property, and the nights on which it is: the next 30 days of
-- check-in, one and two nights, in two markets.
SELECT
    (row_number() OVER (ORDER BY ask.market, stay.nights, day.number) - 1)::INTEGER AS question_no,
    'multi' AS operation,
    'multi' AS source,
    'Hotel' AS product_type,
    ask.market,
    'EUR' AS currency,
    (getvariable('first_day') + 1 + day.number::INTEGER)::DATE AS check_in,
    stay.nights::SMALLINT AS nights,
    '2' AS party,
    greatest(day.number - 29, 0) AS first_night,
    least(day.number, getvariable('nights') - 1) AS last_night
FROM range(getvariable('nights') + 29) AS day (number)
CROSS JOIN (VALUES (1), (2)) AS stay (nights)
CROSS JOIN (VALUES ('DE'), ('GB')) AS ask (market)
