-- One row per market that sold nothing in the last published sweep, and is silent for no longer than `silent_nights`.
-- properties: Number of properties that were on sale there before; at least five, as fewer may sell out by chance.
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
)

SELECT
    counted.market,
    sale.properties,
    counted.answered,
    counted.sold_date
FROM counted
INNER JOIN mart.market_on_sale AS sale ON counted.market = sale.market
WHERE
    sale.properties >= 5
    AND counted.offered = 0
    AND counted.answered > 0
ORDER BY counted.market
