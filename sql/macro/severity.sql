-- Severity of a finding by its absolute size in percent, with the bounds of ref.analysis; unknown size: `medium`.
CREATE OR REPLACE MACRO mart.severity(size_pct, medium_pct, high_pct) AS (
    CASE
        WHEN abs(size_pct) >= high_pct THEN 'high'
        WHEN size_pct IS NULL OR abs(size_pct) >= medium_pct THEN 'medium'
        ELSE 'low'
    END
)
