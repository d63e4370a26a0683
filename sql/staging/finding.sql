-- One row per finding of tonight about a stay that lies ahead.
-- flag_id: Id of the flag, the same every night: the rule and the subject_key in hex; argument of `nightaudit explain`.
SELECT
    mart.flag_id(found.rule, found.subject_key) AS flag_id,
    found.*
FROM night.found AS found
CROSS JOIN night.sweep AS sweep
WHERE found.check_in IS NULL OR found.check_in > sweep.snapshot_date
-- If a rule finds a key twice, it is one flag: the larger finding.
QUALIFY
    row_number() OVER (
        PARTITION BY found.rule, found.subject_key ORDER BY found.size_pct DESC NULLS LAST, found.finding ASC
    ) = 1
