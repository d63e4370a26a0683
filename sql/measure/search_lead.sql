-- One row per search, with its class of lead time.
SELECT
    search.*,
    CASE
        WHEN search.check_in - search.started_at::DATE <= 7 THEN '000_to_007'
        WHEN search.check_in - search.started_at::DATE <= 30 THEN '008_to_030'
        WHEN search.check_in - search.started_at::DATE <= 90 THEN '031_to_090'
        ELSE 'over_090'
    END AS lead
FROM sweep_files.search AS search
