-- One row per match grade, source, market and reference market: how long offers stay dearer, and how episodes end.
-- episodes: Episodes in which an offer, or the cheapest of a group, was dearer, snapshot after snapshot.
-- running: Number of episodes that have not ended; their length is not known to the end, so the median leaves them out.
-- resolved: Episodes that ended because the offer was compared and not dearer any more.
-- ended_otherwise: Episodes that ended because one of the two was gone, the stay began or the reference changed.
-- median_days_to_resolve: Median of the days from the first sweep of an episode to its resolution; resolved ones only.
-- longest_running_days: Days that the longest running episode has lasted so far; NULL: none is running.
-- longest_running_snapshots: Snapshots in a row that the most persistent running episode was seen in.
-- match_grade: `exact`, `board_family` or `cheapest`: never added up.
WITH episode AS (
    SELECT
        'exact' AS match_grade,
        exact.source,
        exact.market,
        exact.reference_market,
        exact.is_running,
        exact.ended_by,
        exact.days,
        exact.snapshots
    FROM mart.parity_episode AS exact

    UNION ALL BY NAME

    SELECT
        cheapest.match_grade,
        cheapest.source,
        cheapest.market,
        cheapest.reference_market,
        cheapest.is_running,
        cheapest.ended_by,
        cheapest.days,
        cheapest.snapshots
    FROM mart.parity_group_episode AS cheapest
)

SELECT
    episode.source,
    episode.market,
    episode.reference_market,
    count(*) AS episodes,
    count(*) FILTER (WHERE episode.is_running) AS running,
    count(*) FILTER (WHERE episode.ended_by = 'resolved') AS resolved,
    count(*) FILTER (WHERE episode.ended_by <> 'resolved') AS ended_otherwise,
    median(episode.days) FILTER (WHERE episode.ended_by = 'resolved') AS median_days_to_resolve,
    max(episode.days) FILTER (WHERE episode.is_running) AS longest_running_days,
    max(episode.snapshots) FILTER (WHERE episode.is_running) AS longest_running_snapshots,
    episode.match_grade
FROM episode
GROUP BY episode.match_grade, episode.source, episode.market, episode.reference_market
