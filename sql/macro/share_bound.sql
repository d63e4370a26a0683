-- Bound of the share k / n by Wilson's 95% interval: side -1: lower bound; 1: upper bound.
CREATE OR REPLACE MACRO mart.share_bound(k, n, side) AS (
    CASE
        WHEN n > 0
            THEN
                (
                    k::DOUBLE / n + 1.9208 / n
                    + side * 1.96 * sqrt(k::DOUBLE / n * (1 - k::DOUBLE / n) / n + 0.9604 / n / n)
                ) / (1 + 3.8416 / n)
    END
)
