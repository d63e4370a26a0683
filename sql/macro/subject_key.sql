-- Stable key of what a finding is about: the first 63 bits of the MD5 of its rule and of its subject as text.
-- The same every night, and never NULL: parts of a subject that may be missing are written as `~`, or left out.
CREATE OR REPLACE MACRO mart.subject_key(rule, subject) AS (
    md5_number_lower(concat_ws('|', rule, subject)) >> 1
)::BIGINT
