-- One row: how exact pairs of list answers compare, each offer once.
-- properties: Number of properties with a pair.
-- kept: Sum over these properties of the share of pairs that are no dearer than in the reference market.
WITH per_property AS (
    SELECT
        property_id,
        count(*) AS pairs,
        count(*) FILTER (WHERE verdict = 'win') AS win,
        count(*) FILTER (WHERE verdict = 'meet') AS meet,
        count(*) FILTER (WHERE verdict = 'lose') AS lose
    FROM mart.market_parity
    WHERE
        match_grade = 'exact'
        AND source = 'multi'
        AND currency_basis <> 'supplier_rate'
        AND is_within(property_id, market, check_in)
    GROUP BY property_id
)

SELECT
    coalesce(sum(pairs), 0)::BIGINT AS pairs,
    coalesce(sum(win), 0)::BIGINT AS win,
    coalesce(sum(meet), 0)::BIGINT AS meet,
    coalesce(sum(lose), 0)::BIGINT AS lose,
    count(*) AS properties,
    -- Decimals: the last bit of a sum of fractions depends on the order of its rows.
    coalesce(sum((1 - lose / pairs)::DECIMAL(18, 9)), 0)::DOUBLE AS kept
FROM per_property
