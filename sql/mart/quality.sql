-- One row per sweep, market, table and check, as the sweep's last audit found it; blocked sweeps included.
-- is_published: Whether the sweep is part of this file.
SELECT
    quality.*,
    sweep.sweep_id IS NOT NULL AS is_published
FROM lake.quality AS quality
LEFT JOIN mart.sweep AS sweep ON sweep.sweep_id = quality.sweep_id
QUALIFY quality.audit_no = max(quality.audit_no) OVER (PARTITION BY quality.sweep_id)
