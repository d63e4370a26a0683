-- One row per source and offer key last seen below its price before promotions: what it has cost so far.
-- plain_seen_at: Last sighting without the running promotion before it began; NULL: it ran at the first sighting.
-- began_at: First sighting of the running promotion.
-- longest_unseen_days: Longest time between two observations of it, in days.
-- first_seen_at: First sighting with a price.
-- highest: Highest total ever seen, in currency.
-- highest_from: Start of the first interval with that total.
-- moved: Logarithm of the change of the market's prices since highest_from.
-- highest_moved: Highest of raised_total of mart.raised_total.
-- lowest_before: Lowest total seen in the reference_days before began_at, in currency; NULL: none seen.
-- lowest: Lowest of raised_before of mart.raised_total in these days, and its interval; NULL: none seen.
-- snapshots: Number of sweeps that saw it on sale with a price.
-- promoted_snapshots: Number of sweeps that saw it below its price before promotions.
WITH raised AS NOT MATERIALIZED (
    FROM mart.raised_total
)

SELECT
    raised.source,
    raised.property_id,
    raised.offer_key,
    any_value(raised.plain_seen_at) AS plain_seen_at,
    any_value(raised.began_at) AS began_at,
    any_value(raised.longest_unseen_days) AS longest_unseen_days,
    min(raised.valid_from) AS first_seen_at,
    any_value(raised.highest) AS highest,
    min(raised.valid_from) FILTER (WHERE raised.total = raised.highest) AS highest_from,
    arg_min(raised.moved, raised.valid_from) FILTER (WHERE raised.total = raised.highest) AS moved,
    max(raised.raised_total) AS highest_moved,
    min(raised.total) FILTER (WHERE raised.is_before) AS lowest_before,
    min({
        'moved': raised.raised_before,
        'valid_from': raised.valid_from,
        'change': raised.moved_since_seen,
        'risen': raised.risen_since_seen
    }) FILTER (WHERE raised.is_before) AS lowest,
    sum(raised.snapshots)::INTEGER AS snapshots,
    coalesce(sum(raised.snapshots) FILTER (WHERE raised.is_below), 0)::INTEGER AS promoted_snapshots
FROM raised
WHERE NOT raised.is_only
GROUP BY raised.source, raised.property_id, raised.offer_key

UNION ALL

-- What has one interval needs no GROUP BY, and that is most.
SELECT
    raised.source,
    raised.property_id,
    raised.offer_key,
    raised.plain_seen_at,
    raised.began_at,
    raised.longest_unseen_days,
    raised.valid_from AS first_seen_at,
    raised.highest,
    raised.valid_from AS highest_from,
    raised.moved,
    raised.raised_total AS highest_moved,
    NULL AS lowest_before,
    NULL AS lowest,
    raised.snapshots::INTEGER AS snapshots,
    raised.snapshots::INTEGER AS promoted_snapshots
FROM raised
WHERE raised.is_only
