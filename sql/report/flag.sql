-- One row per open finding: `nightaudit explain FLAG` traces it to its raw answers.
-- hours_flagged: Hours from first_flagged_at to the start of the last sweep that observed its evidence.
-- confirmation: Result of the last re-query: `confirmed`, `gone` or `not_confirmable`; NULL: not re-queried.
-- It is NULL also if a later sweep found again what a re-query did not.
-- confirmation_reason: Why it could not be confirmed; NULL: confirmed, gone or not re-queried.
-- confirmed_at: When the last search of that re-query was sent, UTC; NULL: none was sent.
-- confirmation_raw_address: Raw addresses of the answers to that re-query, separated by spaces.
-- size_unit: Unit of size_pct: `%`, `% of the total` or `percentage points`.
SELECT
    flag.*,
    date_diff('second', flag.first_flagged_at, flag.last_flagged_at) / 3600.0 AS hours_flagged,
    confirmation.outcome AS confirmation,
    confirmation.reason AS confirmation_reason,
    confirmation.searched_at AS confirmed_at,
    confirmation.raw_address AS confirmation_raw_address,
    mart.size_unit(flag.rule) AS size_unit
FROM state.flag_open AS flag
LEFT JOIN (
    SELECT confirmation.*
    FROM lake.confirmation AS confirmation
    QUALIFY row_number() OVER (PARTITION BY confirmation.flag_id ORDER BY confirmation.run_at DESC) = 1
) AS confirmation
    ON
        confirmation.flag_id = flag.flag_id
        AND confirmation.run_at >= flag.first_flagged_at
        AND (confirmation.outcome <> 'gone' OR confirmation.run_at >= flag.last_flagged_at)
