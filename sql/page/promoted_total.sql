-- One row: list offers with a total, and those below their price before promotions (see mart.taken_off).
-- mean_depth_pct: Mean discount of the promoted ones, in percent of the price before.
SELECT
    count(*) AS offers,
    count(*) FILTER (WHERE mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) > 0) AS promoted,
    avg(try_cast(100 * (1 - offer.total / nullif(offer.pre_promo_total, 0)) AS DECIMAL(38, 9))) FILTER (
        WHERE mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) > 0
    ) AS mean_depth_pct
FROM mart.offer_latest AS offer
-- Only where it matters: most offers have no promotion.
LEFT JOIN ref.currency AS unit
    ON unit.currency = CASE WHEN offer.total < offer.pre_promo_total THEN offer.currency END
WHERE offer.source = 'multi' AND offer.total IS NOT NULL AND is_within(offer.property_id, offer.market, offer.check_in)
