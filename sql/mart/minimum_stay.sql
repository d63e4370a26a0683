-- One row per sweep, check-in and all else of a cell but its nights that was answered about several numbers of nights.
-- lengths_answered: Numbers of nights that were answered, ascending.
-- shortest_offered: Fewest nights on sale; NULL: nothing is.
-- shorter_refused: Numbers of nights below that were answered without an offer (absent counts), ascending.
-- implied_minimum_stay: shortest_offered, where shorter stays were answered without an offer; NULL: not implied.
SELECT
    cell.operation,
    cell.property_id,
    cell.market,
    cell.product_type,
    cell.check_in,
    cell.party,
    cell.currency_asked,
    cell.sweep_id,
    list(cell.nights ORDER BY cell.nights) AS lengths_answered,
    min(cell.nights) FILTER (WHERE cell.status = 'offered') AS shortest_offered,
    coalesce(
        list(cell.nights ORDER BY cell.nights) FILTER (WHERE cell.nights < cell.shortest), []
    ) AS shorter_refused,
    CASE WHEN len(shorter_refused) > 0 THEN shortest_offered END AS implied_minimum_stay -- noqa: RF02
FROM (
    SELECT
        asked.*,
        min(asked.nights) FILTER (WHERE asked.status = 'offered') OVER (
            PARTITION BY
                asked.operation,
                asked.property_id,
                asked.market,
                asked.product_type,
                asked.check_in,
                asked.party,
                asked.currency_asked,
                asked.sweep_id
        ) AS shortest
    FROM state.cell AS asked
    WHERE
        asked.status IN ('offered', 'absent')
        -- Restricted rates and several rooms say nothing of the length.
        OR (asked.status = 'no_offer' AND coalesce(asked.code, 1023) IN (1023, 1025))
) AS cell
GROUP BY
    cell.operation,
    cell.property_id,
    cell.market,
    cell.product_type,
    cell.check_in,
    cell.party,
    cell.currency_asked,
    cell.sweep_id
HAVING count(*) > 1
