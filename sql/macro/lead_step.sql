-- Range of lead days that a number falls into; ranges sort by name.
CREATE OR REPLACE MACRO mart.lead_step(lead_days) AS (
    CASE
        WHEN lead_days < 7 THEN '000-006'
        WHEN lead_days < 14 THEN '007-013'
        WHEN lead_days < 30 THEN '014-029'
        WHEN lead_days < 60 THEN '030-059'
        WHEN lead_days < 90 THEN '060-089'
        WHEN lead_days < 180 THEN '090-179'
        ELSE '180 and more'
    END
)
