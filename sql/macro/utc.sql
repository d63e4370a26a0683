-- An instant as a timestamp in UTC, whatever the time zone of the session. Of millions of rows, calendars of time zones
-- take more time than all else: use it for days of instants, and for distances between them.
CREATE OR REPLACE MACRO mart.utc(instant) AS (make_timestamp(epoch_us(instant)))
