-- One row per sweep and cell without its length of stay, if several lengths were answered: which of them are on sale.
-- lengths_answered: Lengths of stay that were answered, in nights, ascending.
-- shortest_offered: Shortest length on sale, in nights; NULL: none is on sale.
-- shorter_refused: Shorter lengths answered without an offer (`absent` included; read in full), in nights.
-- implied_minimum_stay: shortest_offered if shorter stays were answered without offers, in nights; NULL: none implied.
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
    CASE WHEN len(shorter_refused) > 0 THEN shortest_offered END AS implied_minimum_stay
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
        asked.status = 'offered'
        OR (
            -- What could not be read may have been an offer.
            asked.is_whole
            AND (
                asked.status = 'absent'
                -- Restricted rates (1024) and several rooms (1026) say nothing about the length.
                OR (asked.status = 'no_offer' AND coalesce(asked.code, 1023) IN (1023, 1025))
            )
        )
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
