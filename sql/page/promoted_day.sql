-- One row per property and check-in: its list offers, and how many of them are promoted.
-- promoted_pct: Offers below their price before promotions (mart.taken_off), in percent of the offers.
SELECT
    offer.property_id,
    offer.check_in,
    count(*) AS offers,
    100.0
    * count(*) FILTER (WHERE mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) > 0)
    / count(*) AS promoted_pct
FROM mart.offer_latest AS offer
-- Only where it matters: most offers have no promotion.
LEFT JOIN ref.currency AS unit
    ON unit.currency = CASE WHEN offer.total < offer.pre_promo_total THEN offer.currency END
WHERE offer.source = 'multi' AND offer.total > 0 AND is_within(offer.property_id, offer.market, offer.check_in)
GROUP BY offer.property_id, offer.check_in
ORDER BY ALL
