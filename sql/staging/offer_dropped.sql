-- One row per offer left out of comparisons, from this sweep on or longer, because answers left it in doubt too long.
-- Offers whose stay has begun are not listed: that is why they leave comparisons.
-- ended_by: Why its episodes end: `not_asked` if its property, stay or currency is no longer requested, else `gone`.
SELECT
    before.source,
    before.property_id,
    before.cell_key,
    before.offer_key,
    CASE WHEN before.unobserved_since IS NULL THEN 'not_asked' ELSE 'gone' END AS ended_by
FROM night.offer_ending AS before
CROSS JOIN night.sweep AS sweep
CROSS JOIN ref.analysis AS analysis
WHERE
    NOT before.is_seen
    AND before.doubted_since IS NOT NULL
    AND before.check_in > sweep.snapshot_date
    AND NOT mart.is_on_sale(before.doubted_since, sweep.started_at, analysis.unobserved_nights)
