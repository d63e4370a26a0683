-- One row per source, market and reference market: how long offers stay dearer than in it, and how episodes end.
-- episodes: Episodes in which an offer was dearer, snapshot after snapshot.
-- running: Number of episodes that have not ended; their length is unknown, so means leave them out.
-- resolved: Episodes that ended because the offer was compared and not dearer any more.
-- ended_otherwise: Episodes that ended because one of the two was gone, the stay began or the reference changed.
-- median_days_to_resolve: Median of the days from the first sweep of an episode to its resolution; resolved ones only.
-- longest_running_days: Days that the longest running episode has lasted so far.
-- longest_running_snapshots: Snapshots in a row that the most persistent running episode was seen in.
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
    max(episode.snapshots) FILTER (WHERE episode.is_running) AS longest_running_snapshots
FROM mart.parity_episode AS episode
GROUP BY episode.source, episode.market, episode.reference_market
