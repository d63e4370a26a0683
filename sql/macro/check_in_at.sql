-- When a stay begins: at the property's own hour and time zone if its file states them, else at the lake's default.
CREATE OR REPLACE MACRO mart.check_in_at(check_in, check_in_time, time_zone, check_in_hour, check_in_time_zone) AS (
    (check_in::DATE + coalesce(check_in_time::TIME, make_time(check_in_hour, 0, 0)))
    AT TIME ZONE coalesce(time_zone, check_in_time_zone)
)
