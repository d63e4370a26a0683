-- One row per search and night, numbered in the planner's order. `asked_no` is its batch, or its property if single.
WITH batch AS (
    SELECT DISTINCT
        'multi' AS operation,
        batch_no AS asked_no
    FROM property

    UNION ALL

    SELECT
        'single' AS operation,
        property_no AS asked_no
    FROM property
    WHERE is_looked_at
),

numbered AS (
    SELECT
        night.number::INTEGER AS night,
        question.*,
        batch.asked_no,
        (row_number() OVER (
            PARTITION BY night.number
            ORDER BY question.operation, question.market, batch.asked_no, question.question_no
        ) - 1)::BIGINT AS search_no,
        drawn('search', concat_ws('/', night.number, question.question_no, batch.asked_no), 1000) AS luck
    FROM range(getvariable('nights')) AS night (number)
    INNER JOIN question ON night.number BETWEEN question.first_night AND question.last_night
    INNER JOIN batch ON batch.operation = question.operation
)

SELECT
    numbered.* EXCLUDE (luck),
    search_no * 256 + 1 AS search_id,
    started_at(night) + to_milliseconds(20 * search_no) AS searched_at,
    CASE
        WHEN luck < 4 THEN 'failed' WHEN luck < 7 THEN 'not_swept' WHEN luck < 8 THEN 'rejected' ELSE 'answered'
    END AS outcome
FROM numbered
