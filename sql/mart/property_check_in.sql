-- One row per property whose time of check-in or time zone the file of properties that was loaded last states.
-- check_in_time: Time of day from which guests are let in, like 15:00; NULL: not stated.
-- time_zone: Time zone of the property, by its name in the tz database; NULL: not stated.
SELECT
    stated.property_id,
    stated.check_in_time,
    stated.time_zone
FROM lake.property_check_in AS stated
WHERE stated.input_id = (SELECT max(properties.input_id) FROM lake.property_file AS properties)
