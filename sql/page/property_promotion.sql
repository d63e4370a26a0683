-- One row per property, market, currency and product type with list offers: how many are promoted, depth and findings.
-- offers: Number of list offers with a total; promoted: of these, with mart.taken_off above 0.
-- depth_pct: Median discount, in percent of the price before; NULL: nothing is promoted.
-- never_charged: Open findings of reference_never_charged; above_lowest and evergreen: of the rules of these names.
WITH promoted AS (
    SELECT
        offer.property_id,
        offer.market,
        offer.currency,
        offer.product_type,
        count(*) AS offers,
        count(*) FILTER (WHERE mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) > 0) AS promoted,
        median(mart.depth_pct(offer.total, offer.pre_promo_total)) FILTER (
            WHERE mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) > 0
        ) AS depth_pct
    FROM mart.offer_latest AS offer
    -- Only where it matters: most offers have no promotion.
    LEFT JOIN ref.currency AS unit
        ON unit.currency = CASE WHEN offer.total < offer.pre_promo_total THEN offer.currency END
    WHERE offer.source = 'multi' AND offer.total > 0 AND is_within(offer.property_id, offer.market, offer.check_in)
    GROUP BY ALL
),

-- Judging each price takes its full history, so the counts come from the findings.
found AS (
    SELECT
        property_id,
        market,
        currency,
        product_type,
        count(*) FILTER (WHERE rule = 'reference_never_charged') AS never_charged,
        count(*) FILTER (WHERE rule = 'reference_above_lowest') AS above_lowest,
        count(*) FILTER (WHERE rule = 'evergreen_promotion') AS evergreen
    FROM report.flag
    WHERE source = 'multi' AND is_within(property_id, market, check_in)
    GROUP BY ALL
)

SELECT
    promoted.*,
    coalesce(found.never_charged, 0) AS never_charged,
    coalesce(found.above_lowest, 0) AS above_lowest,
    coalesce(found.evergreen, 0) AS evergreen
FROM promoted
LEFT JOIN found
    ON
        promoted.property_id = found.property_id
        AND promoted.market = found.market
        AND promoted.currency = found.currency
        AND promoted.product_type = found.product_type
ORDER BY ALL
