-- One row: how exact pairs of list answers compare, each offer once, on one currency basis.
-- The basis is one currency where any pair has it, else the reference rate: pairs on the two are never added up.
-- properties: Number of properties with a pair.
-- kept: Sum over these properties of the share of pairs that are no dearer than in the reference market.
-- currency_basis: `same` or `reference_rate`; NULL: there is no pair.
-- pairs_left_out: Number of pairs at the reference rate that are left out.
WITH per_property AS (
    SELECT
        property_id,
        currency_basis,
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
    GROUP BY property_id, currency_basis
),

placed AS (
    SELECT
        *,
        mart.rank_of_basis(currency_basis) = min(mart.rank_of_basis(currency_basis)) OVER () AS is_counted
    FROM per_property
)

SELECT
    coalesce(sum(pairs) FILTER (WHERE is_counted), 0)::BIGINT AS pairs,
    coalesce(sum(win) FILTER (WHERE is_counted), 0)::BIGINT AS win,
    coalesce(sum(meet) FILTER (WHERE is_counted), 0)::BIGINT AS meet,
    coalesce(sum(lose) FILTER (WHERE is_counted), 0)::BIGINT AS lose,
    count(*) FILTER (WHERE is_counted) AS properties,
    -- Decimals: the last bit of a sum of fractions depends on the order of its rows.
    coalesce(sum((1 - lose / pairs)::DECIMAL(18, 9)) FILTER (WHERE is_counted), 0)::DOUBLE AS kept,
    any_value(currency_basis) FILTER (WHERE is_counted) AS currency_basis,
    coalesce(sum(pairs) FILTER (WHERE NOT is_counted), 0)::BIGINT AS pairs_left_out
FROM placed
