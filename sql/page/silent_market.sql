-- One row per market that sold nothing in the last published sweep, however long it has not.
-- properties: Number of requested properties on sale when it last sold any; at least five: fewer may be sold out.
-- answered: Number of cells of that sweep that were answered, all without an offer.
-- sold_date: UTC date of the last sweep that found an offer there.
WITH night AS (SELECT max_by(sweep.sweep_id, sweep.started_at) AS sweep_id FROM mart.sweep),

each_count AS (
    SELECT
        *,
        planned - rejected - failed - not_swept AS answered
    FROM state.cell_count
),

counted AS (
    SELECT
        count_of.market,
        max(count_of.snapshot_date) FILTER (WHERE count_of.offered > 0) AS sold_date,
        sum(count_of.offered) FILTER (WHERE count_of.sweep_id = night.sweep_id) AS offered,
        sum(count_of.answered) FILTER (WHERE count_of.sweep_id = night.sweep_id)::BIGINT AS answered
    FROM each_count AS count_of
    CROSS JOIN night
    GROUP BY count_of.market
),

placed AS (
    SELECT
        sale.property_id,
        sale.market,
        sale.last_offered_at = max(sale.last_offered_at) OVER (PARTITION BY sale.operation, sale.market) AS is_of_last
    FROM state.property_sale AS sale
    SEMI JOIN mart.property_requested AS requested
        ON
            requested.property_id = sale.property_id
            AND requested.market = sale.market
),

on_sale AS (
    SELECT
        placed.market,
        count(DISTINCT placed.property_id) AS properties
    FROM placed
    WHERE placed.is_of_last
    GROUP BY placed.market
)

SELECT
    counted.market,
    sale.properties,
    counted.answered,
    counted.sold_date
FROM counted
INNER JOIN on_sale AS sale ON sale.market = counted.market
WHERE
    sale.properties >= 5
    AND counted.offered = 0
    AND counted.answered > 0
ORDER BY counted.market
