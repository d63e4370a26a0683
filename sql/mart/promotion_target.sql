-- One row per source, market, product type, lead days, nights and weekday of check-in: how many offers are promoted.
-- lead_step: Range of lead days.
-- weekday: Weekday of check-in, 1 for Monday.
-- planned: Number of requested cells.
-- answered: Number of requested cells whose latest request was answered.
-- comparable: Number of offers on sale with a total.
-- promoted: Number of offers on sale with a total below the price before promotions (see mart.taken_off).
-- incidence_pct: 100 x promoted / comparable.
-- mean_depth_pct: Mean depth of promoted offers, 100 x (1 - total / pre_promo_total).
-- deepest_pct: Largest depth of promoted offers.
-- with_discount: Number of promoted offers that name a discount.
-- with_free_night: Number of promoted offers that name a free night.
-- none_named: Number of promoted offers that name neither a discount nor a free night.
WITH told AS (
    SELECT
        latest.source,
        latest.market,
        latest.product_type,
        mart.lead_step(latest.lead_days) AS lead_step,
        latest.nights,
        isodow(latest.check_in) AS weekday,
        NULL::BOOLEAN AS is_answered,
        coalesce(mart.taken_off(latest.total, latest.pre_promo_total, unit.minor_unit) > 0, FALSE) AS is_promoted,
        CASE WHEN is_promoted THEN mart.depth_pct(latest.total, latest.pre_promo_total) END AS depth_pct,
        coalesce(contains(named.promotion_kinds, 'discount_off'), FALSE) AS is_discount,
        coalesce(contains(named.promotion_kinds, 'free_night'), FALSE) AS is_free_night
    FROM mart.offer_latest AS latest
    LEFT JOIN mart.promotion_named AS named ON named.promotion_key = latest.promotion_key
    -- Only where it matters: most offers have no promotion.
    LEFT JOIN ref.currency AS unit
        ON unit.currency = CASE WHEN latest.total < latest.pre_promo_total THEN latest.currency END
    WHERE latest.total IS NOT NULL

    UNION ALL BY NAME

    SELECT
        CASE cell.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
        cell.market,
        cell.product_type,
        mart.lead_step(date_diff('day', mart.utc(cell.asked_at)::DATE, cell.check_in)) AS lead_step,
        cell.nights,
        isodow(cell.check_in) AS weekday,
        mart.is_answered(cell.status) AS is_answered
    FROM mart.cell_requested AS cell
)

SELECT
    told.source,
    told.market,
    told.product_type,
    told.lead_step,
    told.nights,
    told.weekday,
    count(told.is_answered) AS planned,
    count(*) FILTER (WHERE told.is_answered) AS answered,
    count(*) FILTER (WHERE told.is_answered IS NULL) AS comparable,
    count(*) FILTER (WHERE told.is_promoted) AS promoted,
    100.0 * promoted / nullif(comparable, 0) AS incidence_pct,
    -- Decimals: the last bit of a sum of fractions depends on the order of its rows.
    avg(told.depth_pct::DECIMAL(38, 9)) AS mean_depth_pct,
    max(told.depth_pct) AS deepest_pct,
    count(*) FILTER (WHERE told.is_promoted AND told.is_discount) AS with_discount,
    count(*) FILTER (WHERE told.is_promoted AND told.is_free_night) AS with_free_night,
    count(*) FILTER (WHERE told.is_promoted AND NOT told.is_discount AND NOT told.is_free_night) AS none_named
FROM told
GROUP BY told.source, told.market, told.product_type, told.lead_step, told.nights, told.weekday
