-- Severity of a finding by its size in percent, whatever its sign; the bounds are those of ref.analysis.
CREATE OR REPLACE MACRO mart.severity(size_pct, medium_pct, high_pct) AS (
    CASE WHEN abs(size_pct) >= high_pct THEN 'high' WHEN abs(size_pct) >= medium_pct THEN 'medium' ELSE 'low' END
)
