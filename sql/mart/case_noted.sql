-- One row per case that was acknowledged, muted, given an owner or commented on: its latest notes.
-- case_id: Case, as in report.finding_case.
-- acknowledged_at: When it was last acknowledged; NULL: never.
-- acknowledged_pct: Its largest size at that time, in percent, without sign; NULL: unknown, or it had no size.
-- muted_until: First day on which it is shown again, from the latest mute; NULL: not muted.
-- owner: Person who handles it, from the latest entry; NULL: none.
-- note: Latest note; NULL: none.
-- acknowledged_lowest_pct: Its smallest size at that time, in percent; NULL: unknown, or it had no size.
-- acknowledged_highest_pct: Its largest size at that time, in percent; NULL: unknown, or it had no size.
-- acknowledged_stays: Its number of stays at that time; NULL: unknown.
-- acknowledged_eur: Its exposure_eur at that time; NULL: unknown.
-- acknowledged_amounts: Its amounts at that time, by currency; empty: unknown, or it had none.
WITH latest AS (
    SELECT
        case_note.case_id,
        max(case_note.noted_at) FILTER (WHERE case_note.action = 'acknowledge') AS acknowledged_at,
        string_split(
            arg_max(coalesce(case_note.value, ''), case_note.noted_at) FILTER (WHERE case_note.action = 'acknowledge'),
            ' '
        ) AS extent,
        try_cast(
            arg_max(case_note.value, case_note.noted_at) FILTER (WHERE case_note.action = 'mute') AS DATE
        ) AS muted_until,
        -- An empty entry withdraws the one before.
        nullif(arg_max(case_note.value, case_note.noted_at) FILTER (WHERE case_note.action = 'owner'), '') AS owner,
        nullif(arg_max(case_note.value, case_note.noted_at) FILTER (WHERE case_note.action = 'note'), '') AS note
    FROM lake.case_note AS case_note
    GROUP BY case_note.case_id
)

SELECT
    latest.case_id,
    latest.acknowledged_at,
    -- An older note has one number, the largest size without sign.
    greatest(abs(try_cast(latest.extent[1] AS DOUBLE)), abs(try_cast(latest.extent[2] AS DOUBLE))) AS acknowledged_pct,
    latest.muted_until,
    latest.owner,
    latest.note,
    CASE WHEN len(latest.extent) > 1 THEN try_cast(latest.extent[1] AS DOUBLE) END AS acknowledged_lowest_pct,
    CASE WHEN len(latest.extent) > 1 THEN try_cast(latest.extent[2] AS DOUBLE) END AS acknowledged_highest_pct,
    try_cast(latest.extent[3] AS BIGINT) AS acknowledged_stays,
    try_cast(latest.extent[4] AS DECIMAL(38, 2)) AS acknowledged_eur,
    list_transform(
        coalesce(latest.extent[5:], []),
        LAMBDA said: {
            'currency': split_part(said, '=', 1),
            'amount': try_cast(split_part(said, '=', 2) AS DECIMAL(38, 4))
        }
    ) AS acknowledged_amounts
FROM latest
