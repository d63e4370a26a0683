-- One row per property whose check-in time or time zone is stated in the properties file loaded last.
-- check_in_time: Earliest time of check-in, such as 15:00; NULL: not stated.
-- time_zone: Time zone of the property (tz database name); NULL: not stated.
SELECT
    stated.property_id,
    stated.check_in_time,
    stated.time_zone
FROM lake.property_check_in AS stated
WHERE stated.input_id = (SELECT max(properties.input_id) FROM lake.property_file AS properties)
