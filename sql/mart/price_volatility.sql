-- One row per source and offer key seen with a total at least twice in a row: how much its price fluctuates.
-- Filter by one property or offer key: the result is computed from all intervals of the offers that you select.
-- snapshots: Number of sweeps that saw the offer with a total.
-- pairs: Number of sweeps that saw it with a total, as the answer before did.
-- changes: Number of pairs with two different totals.
-- changes_per_snapshot: changes / pairs.
-- volatility_pct: Root mean square of the logarithmic changes within pairs, in percent.
-- lowest: Lowest total seen, in currency.
-- highest: Highest total seen, in currency.
-- first_total: First total seen, in currency.
-- last_total: Last total seen, in currency.
SELECT
    priced.source,
    priced.property_id,
    priced.offer_key,
    any_value(priced.market) AS market,
    any_value(priced.product_type) AS product_type,
    any_value(priced.check_in) AS check_in,
    any_value(priced.nights) AS nights,
    any_value(priced.party) AS party,
    any_value(priced.currency) AS currency,
    any_value(priced.room_id) AS room_id,
    any_value(priced.board_id) AS board_id,
    any_value(priced.policy_key) AS policy_key,
    sum(priced.snapshots)::INTEGER AS snapshots,
    -- A first sighting, and one after being gone or without a total, has no previous answer with a total.
    (
        sum(priced.snapshots)
        - count(*) FILTER (WHERE priced.total_before IS NULL OR priced.was_gone OR priced.was_unpriced)
    )::INTEGER AS pairs,
    count(*) FILTER (
        WHERE NOT priced.was_gone AND NOT priced.was_unpriced AND priced.total <> priced.total_before
    ) AS changes,
    changes::DOUBLE / pairs AS changes_per_snapshot,
    -- Decimals: the last bit of a sum of fractions depends on the order of its rows.
    round(
        100 * sqrt(
            coalesce(
                sum((ln(priced.total::DOUBLE / priced.total_before::DOUBLE) ** 2)::DECIMAL(38, 12)) FILTER (
                    WHERE NOT priced.was_gone AND NOT priced.was_unpriced
                ), 0
            )::DOUBLE / pairs
        ), 6
    ) AS volatility_pct,
    min(priced.total) AS lowest,
    max(priced.total) AS highest,
    arg_min(priced.total, priced.valid_from) AS first_total,
    arg_max(priced.total, priced.valid_from) AS last_total
FROM mart.price_interval AS priced
WHERE NOT priced.is_only
GROUP BY priced.source, priced.property_id, priced.offer_key
HAVING pairs > 0

UNION ALL BY NAME

SELECT
    priced.source,
    priced.property_id,
    priced.offer_key,
    priced.market,
    priced.product_type,
    priced.check_in,
    priced.nights,
    priced.party,
    priced.currency,
    priced.room_id,
    priced.board_id,
    priced.policy_key,
    priced.snapshots,
    priced.snapshots - 1 AS pairs,
    0 AS changes,
    0.0::DOUBLE AS changes_per_snapshot,
    0.0::DOUBLE AS volatility_pct,
    priced.total AS lowest,
    priced.total AS highest,
    priced.total AS first_total,
    priced.total AS last_total
FROM mart.price_interval AS priced
WHERE
    priced.is_only
    AND priced.snapshots > 1
