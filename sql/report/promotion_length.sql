-- One row per source, market and product type: how long promotions last, as far as they were observed.
-- promotions: Promotions ever seen; see mart.promotion_episode.
-- running: Number of these promotions that are running now.
-- comparable: Promotions that were seen to begin and to end: the only ones with a length.
-- median_days: Median of the days from first to last sighting of the comparable: no shorter than this.
-- median_days_at_most: Median of the days between the sightings without them.
-- longest_days: Most days from first to last sighting of any promotion.
-- mean_depth_pct: Mean of the greatest depth of each promotion.
SELECT
    episode.source,
    episode.market,
    episode.product_type,
    count(*) AS promotions,
    count(*) FILTER (WHERE episode.is_running) AS running,
    count(episode.days_at_most) AS comparable,
    median(episode.days) FILTER (WHERE episode.days_at_most IS NOT NULL) AS median_days,
    median(episode.days_at_most) AS median_days_at_most,
    max(episode.days) AS longest_days,
    -- Decimals: a sum of fractions would depend on the order of its rows, by its last bit.
    avg(episode.most_depth_pct::DECIMAL(38, 9)) AS mean_depth_pct
FROM mart.promotion_episode AS episode
GROUP BY episode.source, episode.market, episode.product_type
