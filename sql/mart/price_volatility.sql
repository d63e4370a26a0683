-- One row per source and offer key seen with a total at least twice in a row: how much its price fluctuates.
-- Filter by one property or offer key: the result is computed from the price paths of all rows that you select.
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
    path.source,
    path.property_id,
    path.offer_key,
    any_value(path.market) AS market,
    any_value(path.product_type) AS product_type,
    any_value(path.check_in) AS check_in,
    any_value(path.nights) AS nights,
    any_value(path.party) AS party,
    any_value(path.currency) AS currency,
    any_value(path.room_id) AS room_id,
    any_value(path.board_id) AS board_id,
    any_value(path.policy_key) AS policy_key,
    sum(path.snapshots)::INTEGER AS snapshots,
    -- A first sighting, and one after being gone, has no previous answer with a total.
    (sum(path.snapshots) - count(*) FILTER (WHERE path.step_no = 0 OR path.was_gone))::INTEGER AS pairs,
    count(*) FILTER (WHERE path.step_no > 0 AND NOT path.was_gone) AS changes,
    changes::DOUBLE / pairs AS changes_per_snapshot, -- noqa: RF02
    -- Decimals: the last bit of a sum of fractions depends on the order of its rows.
    round(
        100 * sqrt(
            coalesce(
                sum((ln(path.total::DOUBLE / path.total_before::DOUBLE) ** 2)::DECIMAL(38, 12)) FILTER (
                    WHERE NOT path.was_gone
                ), 0
            )::DOUBLE / pairs -- noqa: RF02
        ), 6
    ) AS volatility_pct,
    min(path.total) AS lowest,
    max(path.total) AS highest,
    arg_min(path.total, path.step_no) AS first_total,
    arg_max(path.total, path.step_no) AS last_total
FROM mart.price_path AS path
GROUP BY path.source, path.property_id, path.offer_key
HAVING pairs > 0 -- noqa: RF02
