-- When one cancellation penalty applies: from begins_at, included, until ends_at (NULL: no end). Exact dates win over
-- the window; if they are reversed, the window counts; without one, the penalty has always applied.
CREATE OR REPLACE MACRO mart.penalty_span(start_at, end_at, window_hours, check_in_at) AS (
    CASE
        WHEN coalesce(start_at, end_at) IS NOT NULL AND coalesce(start_at < end_at, TRUE)
            THEN struct_pack(begins_at := coalesce(start_at, '-infinity'::TIMESTAMPTZ), ends_at := end_at)
        ELSE
            struct_pack(
                begins_at := CASE
                    WHEN coalesce(window_hours, 1000001) > 1000000 THEN '-infinity'::TIMESTAMPTZ
                    WHEN window_hours < -1000000 THEN 'infinity'::TIMESTAMPTZ
                    ELSE check_in_at - to_hours(window_hours)
                END,
                ends_at := NULL::TIMESTAMPTZ
            )
    END
)
