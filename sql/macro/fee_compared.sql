-- A mandatory fee of an answer as compared with another one; NULL: unknown in either. One that an answer leaves out is
-- nothing if its excluded charges are the sum of the fees that it states (is_all), and if the other answer states it.
CREATE OR REPLACE MACRO mart.fee_compared(fee, is_all, fee_there, is_all_there) AS (
    CASE
        WHEN fee_there IS NOT NULL THEN coalesce(fee, CASE WHEN is_all THEN 0 END)
        WHEN is_all_there THEN fee
    END
)
