-- One row per finding of tonight about a stay that lies ahead, without those that are dropped, undecided or repeated.
-- flag_id: Id of the flag, the same every night: the rule and the subject_key in hex; argument of `nightaudit explain`.
SELECT
    mart.flag_id(found.rule, found.subject_key) AS flag_id,
    found.*
FROM night.found AS found
CROSS JOIN night.sweep AS sweep
ANTI JOIN night.late_rate_dropped AS dropped
    ON
        found.rule = 'fx_markup'
        AND found.evidence[1].role = 'market'
        AND dropped.market = found.market
        AND dropped.base_currency = found.fx.from_currency
        AND dropped.currency = found.fx.to_currency
ANTI JOIN night.disparity_undecided AS undecided
    ON
        found.rule = 'market_disparity'
        AND undecided.subject_key = found.subject_key
ANTI JOIN night.disparity_repeated AS repeated
    ON
        found.rule = 'market_disparity'
        AND repeated.subject_key = found.subject_key
ANTI JOIN night.all_in_gap_undecided AS in_doubt
    ON
        found.rule = 'all_in_gap'
        AND in_doubt.subject_key = found.subject_key
WHERE found.check_in IS NULL OR found.check_in > sweep.snapshot_date
-- If a rule finds a key twice, it is one flag: the larger finding.
QUALIFY
    row_number() OVER (
        PARTITION BY found.rule, found.subject_key ORDER BY found.size_pct DESC NULLS LAST, found.finding ASC
    ) = 1
