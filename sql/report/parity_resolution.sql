-- One row per match grade, source, market, reference market and currency basis: how long offers stay dearer.
-- episodes: Number of episodes: consecutive snapshots in which an offer, or the cheapest of a group, was dearer.
-- running: Number of episodes that have not ended; their final length is unknown, so the median omits them.
-- resolved: Number of episodes that ended because the offer was compared and no longer dearer.
-- ended_otherwise: Number of episodes that ended because an offer was gone, the stay began or the reference changed.
-- median_days_to_resolve: Median days from the first sweep of a resolved episode to its resolution.
-- longest_running_days: Length so far of the longest running episode, in days; NULL: none is running.
-- longest_running_snapshots: Consecutive snapshots of the most persistent running episode; NULL: none is running.
-- match_grade: `exact`, `board_family` or `cheapest`: never added up.
-- currency_basis: `same`, `supplier_rate` or `reference_rate`: never added up, as one offer may be in the first two.
WITH episode AS (
    SELECT
        'exact' AS match_grade,
        exact.source,
        exact.market,
        exact.reference_market,
        exact.currency_basis,
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
        cheapest.currency_basis,
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
    episode.match_grade,
    episode.currency_basis
FROM episode
GROUP BY episode.match_grade, episode.source, episode.market, episode.reference_market, episode.currency_basis
