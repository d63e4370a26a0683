-- One row per property and check-in: its list offers, and how many of them are promoted.
-- promoted_pct: Offers below their price before promotions, in percent of the offers.
SELECT
    property_id,
    check_in,
    count(*) AS offers,
    100.0 * count(*) FILTER (WHERE total < pre_promo_total) / count(*) AS promoted_pct
FROM mart.offer_latest
WHERE source = 'multi' AND total > 0 AND is_within(property_id, market, check_in)
GROUP BY property_id, check_in
ORDER BY ALL
