-- Id of a finding, the one that `nightaudit explain` takes: its rule and its subject_key in hex.
CREATE OR REPLACE MACRO mart.flag_id(rule, subject_key) AS printf('%s-%016x', rule, subject_key)
