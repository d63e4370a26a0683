-- One row: selling prices below the floor of their exact offer that are not findings yet.
-- prices: Number of these, loaded since the night was published: findings are made once a night. Same currency only.
-- prices_converted: Number of those that had to be converted, at the reference rate.
SELECT
    count(*) FILTER (WHERE fx IS NULL) AS prices,
    count(*) FILTER (WHERE fx IS NOT NULL) AS prices_converted
FROM report.floor_breach
WHERE
    source = 'multi'
    AND match_grade = 'exact'
    AND flag_id NOT IN (SELECT flag.flag_id FROM report.flag)
    AND is_within(property_id, market, check_in)
