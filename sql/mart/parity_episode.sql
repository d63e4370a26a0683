-- One row per episode in which an offer was dearer than in the reference market, including running ones.
-- is_running: TRUE: it has not ended, as far as known.
-- days: Days from its first sweep to its end; of a running one, to the last sweep that found the offer dearer.
-- A market without a single offer has more likely failed (see mart.market_silence), and ends no episode. What is still
-- missing when it sells again, or has been silent for longer, is gone by then.
-- ended_at: Start of the sweep that saw the end, or the day of check-in; NULL: it is running.
-- ended_by: `resolved`, `gone`, `not_asked`, `reference_changed`, `basis_changed` or `stay_began`; NULL: it is running.
SELECT
    episode.*,
    episode.ended_at IS NULL AS is_running,
    date_diff('second', episode.began_at, coalesce(episode.ended_at, episode.last_losing_at)) / 86400.0 AS days
FROM (
    SELECT * FROM state.parity_closed
    UNION ALL BY NAME
    SELECT * FROM state.parity_open
) AS episode
