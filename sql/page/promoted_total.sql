-- One row: list offers with a total, and those below their price before promotions.
-- mean_depth_pct: Mean discount of the promoted ones, in percent of the price before.
SELECT
    count(*) AS offers,
    count(*) FILTER (WHERE total < pre_promo_total) AS promoted,
    avg(try_cast(100 * (1 - total / nullif(pre_promo_total, 0)) AS DECIMAL(38, 9))) FILTER (
        WHERE total < pre_promo_total
    ) AS mean_depth_pct
FROM mart.offer_latest
WHERE source = 'multi' AND total IS NOT NULL AND is_within(property_id, market, check_in)
