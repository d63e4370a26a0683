-- One row per source and offer key on sale whose total is below its price before promotions, by mart.taken_off.
-- lead_step: Lead days in steps.
-- weekday: Weekday of check-in, 1 for Monday.
-- depth_pct: 100 x (1 - total / pre_promo_total), in percent of the price before promotions.
-- promotion_kinds: Distinct kinds of the promotions named, separated by commas; `none named`: none, or without a kind.
-- is_free_night_like: Whether depth_pct is whole nights of the stay, within rounding.
-- Promotions with only value adds are left out: they are not discounts.
SELECT
    latest.source,
    latest.offer_key,
    latest.property_id,
    latest.market,
    latest.product_type,
    latest.check_in,
    latest.nights,
    latest.lead_days,
    mart.lead_step(latest.lead_days) AS lead_step,
    isodow(latest.check_in) AS weekday,
    latest.currency,
    latest.total,
    latest.pre_promo_total,
    mart.depth_pct(latest.total, latest.pre_promo_total) AS depth_pct,
    coalesce(named.promotion_kinds, 'none named') AS promotion_kinds,
    round(depth_pct / 100 * latest.nights) BETWEEN 1 AND latest.nights - 1
    AND abs(depth_pct - 100 * round(depth_pct / 100 * latest.nights) / latest.nights)
    <= analysis.discount_rounding * (1 + 100 / latest.pre_promo_total::DOUBLE) AS is_free_night_like,
    latest.seen_sweep_id,
    latest.seen_search_id,
    latest.seen_offer_no
FROM mart.offer_latest AS latest
CROSS JOIN ref.analysis AS analysis
LEFT JOIN mart.promotion_named AS named ON named.promotion_key = latest.promotion_key
LEFT JOIN ref.currency AS unit ON unit.currency = latest.currency
WHERE
    -- The first condition is known before the join; the second excludes what is only rounded.
    latest.total < latest.pre_promo_total
    AND mart.taken_off(latest.total, latest.pre_promo_total, unit.minor_unit) > 0
