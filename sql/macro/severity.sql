-- Severity of a finding by its size in percent, whatever its sign; the bounds are those of ref.analysis.
-- A size that is not known is `medium`.
CREATE OR REPLACE MACRO mart.severity(size_pct, medium_pct, high_pct) AS (
    CASE
        WHEN abs(size_pct) >= high_pct THEN 'high'
        WHEN size_pct IS NULL OR abs(size_pct) >= medium_pct THEN 'medium'
        ELSE 'low'
    END
)
