-- One row per market and product type of the detail offers on sale: the charges that totals include and exclude.
-- offers: Number of detail offers on sale.
-- comparable: Number of detail offers on sale with a total and known mandatory charges.
-- median_mandatory_drip: Median of mandatory charges / all-in total over comparable offers.
-- excluded_stated: Number of offers that state excluded charges.
-- median_drip: Median of excluded charges / (total + excluded charges) over offers that state excluded charges.
-- included_stated: Number of offers that state included charges.
-- median_included: Median of included charges / total over offers that state included charges.
-- details_stated: Number of offers that state excluded charges and at least one of the four named fees.
-- details_add_up: Number of offers whose named fees add up to the excluded charges, but for rounding.
-- details_leave_rest: Number of offers whose named fees add up to less than the excluded charges: the rest is optional.
-- details_exceed: Number of offers whose named fees add up to more: see report.excluded_charges_mismatch.
SELECT
    offer.market,
    offer.product_type,
    count(*) AS offers,
    count(offer.all_in_total) AS comparable,
    round(median(offer.mandatory_drip_ratio), 6) AS median_mandatory_drip,
    count(offer.drip_ratio) AS excluded_stated,
    round(median(offer.drip_ratio), 6) AS median_drip,
    count(offer.included_ratio) AS included_stated,
    round(median(offer.included_ratio), 6) AS median_included,
    count(*) FILTER (WHERE offer.fees_stated > 0 AND offer.excluded_charges IS NOT NULL) AS details_stated,
    count(*) FILTER (
        WHERE offer.fees_stated > 0 AND abs(offer.excluded_charges - offer.mandatory_charges) <= offer.charges_rounding
    ) AS details_add_up,
    count(*) FILTER (
        WHERE offer.fees_stated > 0 AND offer.excluded_charges - offer.mandatory_charges > offer.charges_rounding
    ) AS details_leave_rest,
    count(*) FILTER (
        WHERE offer.fees_stated > 0 AND offer.mandatory_charges - offer.excluded_charges > offer.charges_rounding
    ) AS details_exceed
FROM mart.all_in_price AS offer
GROUP BY offer.market, offer.product_type
