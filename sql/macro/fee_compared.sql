-- A mandatory fee of an answer, for comparison with another answer; NULL: unknown in either. A fee that an answer omits
-- is 0 if its excluded charges are the sum of the fees that it states (is_all), and if the other answer states it.
CREATE OR REPLACE MACRO mart.fee_compared(fee, is_all, fee_there, is_all_there) AS (
    CASE
        WHEN fee_there IS NOT NULL THEN coalesce(fee, CASE WHEN is_all THEN 0 END)
        WHEN is_all_there THEN fee
    END
)
