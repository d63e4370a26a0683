-- One row per source, dimension and value: how many offers on sale are promoted, and how deep the discounts are.
-- dimension: `all`, `market`, `product_type`, `lead_days`, `nights`, `weekday` of check-in or `promotion_kinds`.
-- value: Value of the dimension; lead days as ranges, weekdays from 1 for Monday; `all` for the dimension `all`.
-- planned: Number of requested cells; for promotion_kinds the number for `all`, because a cell has no kind.
-- answered: Number of these whose latest request was answered.
-- comparable: Number of offers on sale with a total; for promotion_kinds the number for `all`.
-- promoted: Number of offers with a total below the price before promotions.
-- incidence_pct: 100 x promoted / comparable.
-- mean_depth_pct: Mean of 100 x (1 - total / pre_promo_total) over promoted offers.
-- median_depth_pct: Median of 100 x (1 - total / pre_promo_total) over promoted offers.
-- free_night_like: Number of promoted offers whose depth equals whole nights of the stay, within rounding.
-- One dimension at a time; for all of them together, see mart.promotion_target.
-- An offer counts once per source, room, board and policy; promotions with only value adds are left out: no discount.
WITH told AS (
    SELECT
        latest.source,
        latest.market,
        latest.product_type,
        latest.check_in,
        latest.nights,
        latest.lead_days,
        NULL::BOOLEAN AS is_answered,
        latest.total < latest.pre_promo_total AS is_promoted,
        CASE WHEN is_promoted THEN coalesce(named.promotion_kinds, 'none named') END AS kinds,
        CASE WHEN is_promoted THEN 100 * (1 - latest.total::DOUBLE / latest.pre_promo_total::DOUBLE) END AS depth_pct,
        coalesce(latest.pre_promo_total::DOUBLE, 0) AS pre_promo_total
    FROM mart.offer_latest AS latest
    LEFT JOIN mart.promotion_named AS named ON named.promotion_key = latest.promotion_key
    WHERE latest.total IS NOT NULL

    UNION ALL BY NAME

    SELECT
        CASE cell.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
        cell.market,
        cell.product_type,
        cell.check_in,
        cell.nights,
        date_diff('day', (cell.asked_at AT TIME ZONE 'UTC')::DATE, cell.check_in) AS lead_days,
        cell.status IN ('offered', 'no_offer', 'absent') AS is_answered
    FROM state.cell AS cell
),

placed AS (
    SELECT
        told.*,
        mart.lead_step(told.lead_days) AS lead_step,
        isodow(told.check_in) AS weekday,
        round(told.depth_pct / 100 * told.nights) BETWEEN 1 AND told.nights - 1
        AND abs(told.depth_pct - 100 * round(told.depth_pct / 100 * told.nights) / told.nights)
        <= analysis.discount_rounding * (1 + 100 / told.pre_promo_total) AS is_free_night_like
    FROM told
    CROSS JOIN ref.analysis AS analysis
),

counted AS (
    SELECT
        placed.source,
        placed.market,
        placed.product_type,
        placed.lead_step,
        placed.nights,
        placed.weekday,
        placed.kinds,
        grouping(
            placed.market, placed.product_type, placed.lead_step, placed.nights, placed.weekday, placed.kinds
        ) AS grouped,
        count(placed.is_answered) AS planned,
        count(*) FILTER (WHERE placed.is_answered) AS answered,
        count(*) FILTER (WHERE placed.is_answered IS NULL) AS comparable,
        count(*) FILTER (WHERE placed.is_promoted) AS promoted,
        -- Decimals: the last bit of a sum of fractions depends on the order of its rows.
        avg(placed.depth_pct::DECIMAL(38, 9)) AS mean_depth_pct,
        median(placed.depth_pct) AS median_depth_pct,
        count(*) FILTER (WHERE placed.is_free_night_like) AS free_night_like
    FROM placed
    GROUP BY GROUPING SETS (
        (placed.source),
        (placed.source, placed.market),
        (placed.source, placed.product_type),
        (placed.source, placed.lead_step),
        (placed.source, placed.nights),
        (placed.source, placed.weekday),
        (placed.source, placed.kinds)
    )
)

SELECT
    counted.source,
    CASE counted.grouped
        WHEN 63 THEN 'all'
        WHEN 31 THEN 'market'
        WHEN 47 THEN 'product_type'
        WHEN 55 THEN 'lead_days'
        WHEN 59 THEN 'nights'
        WHEN 61 THEN 'weekday'
        ELSE 'promotion_kinds'
    END AS dimension,
    coalesce(
        counted.market,
        counted.product_type,
        counted.lead_step,
        counted.nights::VARCHAR,
        counted.weekday::VARCHAR,
        counted.kinds,
        'all'
    ) AS value,
    CASE counted.grouped WHEN 62 THEN overall.planned ELSE counted.planned END AS planned,
    CASE counted.grouped WHEN 62 THEN overall.answered ELSE counted.answered END AS answered,
    CASE counted.grouped WHEN 62 THEN overall.comparable ELSE counted.comparable END AS comparable,
    counted.promoted,
    100.0 * counted.promoted
    / CASE counted.grouped WHEN 62 THEN overall.comparable ELSE nullif(counted.comparable, 0) END AS incidence_pct,
    counted.mean_depth_pct,
    counted.median_depth_pct,
    counted.free_night_like
FROM counted
INNER JOIN counted AS overall ON overall.source = counted.source AND overall.grouped = 63
WHERE counted.grouped <> 62 OR counted.kinds IS NOT NULL
