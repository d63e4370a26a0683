-- One row per cell of a batch of properties.
SELECT
    (row_number() OVER () - 1)::INTEGER AS cell_no,
    question.*,
    property.property_no,
    property.property_id,
    CASE question.operation WHEN 'multi' THEN property.batch_no ELSE property.property_no END AS asked_no,
    mart.cell_key(
        property.property_id,
        question.market,
        question.product_type,
        question.check_in,
        question.nights,
        question.party,
        question.currency
    ) AS cell_key
FROM question
CROSS JOIN property
WHERE
    property.batch_no = getvariable('batch')
    AND (question.operation = 'multi' OR property.is_looked_at)
