-- One row per episode in which the cheapest offer of a group was dearer than in the reference market.
-- Groups are those of pairs below the exact grade, whichever offer is the cheapest; mart.parity_episode has exact ones.
-- is_running: TRUE: it has not ended, as far as known.
-- days: Days from its first sweep to its end; of a running one, to the latest sweep.
-- A market without a single offer has more likely failed (see mart.market_silence), and ends no episode. What is still
-- missing when it sells again, or has been silent for longer, is gone by then.
-- ended_at: Start of the sweep that saw the end, or the day of check-in; NULL: it is running.
-- ended_by: `resolved`, `gone`, `not_asked`, `reference_changed`, `basis_changed` or `stay_began`; NULL: it is running.
-- Materialized: otherwise DuckDB may first pair every cell of a property with every other one.
WITH placed AS MATERIALIZED (
    SELECT
        running.*,
        place.market
    FROM state.parity_group_open AS running
    INNER JOIN state.cell AS place
        ON
            place.property_id = running.property_id
            AND place.cell_key = running.cell_key
            AND (place.operation = 'multi') = (running.source = 'multi')
)

SELECT
    episode.*,
    episode.ended_at IS NULL AS is_running,
    date_diff('second', episode.began_at, coalesce(episode.ended_at, latest.started_at)) / 86400.0 AS days
FROM (
    SELECT * FROM state.parity_group_closed

    UNION ALL BY NAME

    SELECT
        placed.*,
        place_there.market AS reference_market
    FROM placed
    INNER JOIN state.cell AS place_there
        ON
            place_there.property_id = placed.property_id
            AND place_there.cell_key = placed.reference_cell_key
            AND (place_there.operation = 'multi') = (placed.source = 'multi')
) AS episode
CROSS JOIN (SELECT max(sweep.started_at) AS started_at FROM mart.sweep AS sweep) AS latest
