-- One row per operation, market, product type and minimum stay that the answers imply: how often it occurs.
-- A group is one check-in of a property for one market, party and currency, answered in one sweep for several lengths
-- of stay. See mart.minimum_stay.
-- implied_minimum_stay: Shortest stay on sale, in nights, if shorter ones had no offer; NULL: none is implied.
-- planned: Number of requested cells, for all minimum stays of the operation, market and product type.
-- answered: Number of requested cells whose latest request was answered.
-- comparable: Number of groups with a length on sale, whatever the minimum stay: the denominator of share_pct.
-- groups: Number of comparable groups with this minimum stay.
-- properties: Number of properties with such groups.
-- share_pct: groups in percent of comparable.
WITH cell AS (
    SELECT
        asked.operation,
        asked.market,
        asked.product_type,
        asked.property_id,
        asked.check_in,
        asked.party,
        asked.currency_asked,
        asked.sweep_id,
        asked.nights,
        asked.status = 'offered' AS is_offered,
        mart.is_answered(asked.status) AS is_answered,
        -- Restricted rates (1024), several rooms (1026) and what could not be read say nothing about the length.
        asked.status = 'offered'
        OR (
            asked.is_whole
            AND (
                asked.status = 'absent'
                OR (asked.status = 'no_offer' AND coalesce(asked.code, 1023) IN (1023, 1025))
            )
        ) AS is_told
    FROM mart.cell_requested AS asked
),

length_group AS (
    SELECT
        cell.operation,
        cell.market,
        cell.product_type,
        cell.property_id,
        count(*) AS planned,
        count(*) FILTER (WHERE cell.is_answered) AS answered,
        count(*) FILTER (WHERE cell.is_told) AS lengths,
        min(cell.nights) FILTER (WHERE cell.is_told) AS shortest_told,
        min(cell.nights) FILTER (WHERE cell.is_offered) AS shortest_offered
    FROM cell
    GROUP BY
        cell.operation,
        cell.market,
        cell.product_type,
        cell.property_id,
        cell.check_in,
        cell.party,
        cell.currency_asked,
        cell.sweep_id
),

counted AS (
    SELECT
        length_group.operation,
        length_group.market,
        length_group.product_type,
        CASE
            WHEN length_group.shortest_told < length_group.shortest_offered THEN length_group.shortest_offered
        END AS implied_minimum_stay,
        sum(length_group.planned) AS planned,
        sum(length_group.answered) AS answered,
        count(*) FILTER (WHERE length_group.lengths > 1 AND length_group.shortest_offered IS NOT NULL) AS groups,
        count(DISTINCT length_group.property_id) FILTER (
            WHERE length_group.lengths > 1 AND length_group.shortest_offered IS NOT NULL
        ) AS properties
    FROM length_group
    GROUP BY ALL
)

SELECT
    counted.operation,
    counted.market,
    counted.product_type,
    counted.implied_minimum_stay,
    (sum(counted.planned) OVER whole)::BIGINT AS planned,
    (sum(counted.answered) OVER whole)::BIGINT AS answered,
    (sum(counted.groups) OVER whole)::BIGINT AS comparable,
    counted.groups,
    counted.properties,
    100.0 * counted.groups / nullif(comparable, 0) AS share_pct
FROM counted
WINDOW whole AS (PARTITION BY counted.operation, counted.market, counted.product_type)
QUALIFY counted.groups > 0
