-- Whether the prices of a pair meet, or differ by at most disparity_pct percent.
CREATE OR REPLACE MACRO mart.is_level(verdict, gap_pct, disparity_pct) AS (
    verdict = 'meet' OR abs(gap_pct) <= disparity_pct
)
