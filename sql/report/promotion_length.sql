-- One row per source, market and product type: how long promotions last, as far as they were observed.
-- promotions: Number of promotions ever seen; see mart.promotion_episode.
-- running: Number of promotions that are running now.
-- comparable: Number of promotions seen to begin and to end: the only ones with a known length.
-- median_days: Median days from first to last sighting of comparable promotions: a lower bound of their length.
-- median_days_at_most: Median days between the sightings without them: an upper bound of their length.
-- longest_days: Longest time from first to last sighting of any promotion, in days.
-- mean_depth_pct: Mean of each promotion's largest depth, 100 x (1 - total / pre_promo_total).
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
    -- Decimals: the last bit of a sum of fractions depends on the order of its rows.
    avg(episode.most_depth_pct::DECIMAL(38, 9)) AS mean_depth_pct
FROM mart.promotion_episode AS episode
GROUP BY episode.source, episode.market, episode.product_type
