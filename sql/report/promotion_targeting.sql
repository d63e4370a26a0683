-- One row per source, dimension and value: how many offers on sale are promoted, and how deep the discounts are.
-- dimension: `all`, `market`, `product_type`, `lead_days`, `nights`, `weekday` of check-in or `promotion_kinds`.
-- value: Value of the dimension; lead days as ranges, weekdays from 1 for Monday; `all` for the dimension `all`.
-- planned: Number of requested cells; for promotion_kinds the number for `all`, because a cell has no kind.
-- answered: Number of requested cells whose latest request was answered.
-- comparable: Number of offers on sale with a total; for promotion_kinds the number for `all`.
-- promoted: Number of offers with a total below the price before promotions.
-- incidence_pct: 100 x promoted / comparable.
-- mean_depth_pct: Mean of 100 x (1 - total / pre_promo_total) over promoted offers.
-- median_depth_pct: Median of 100 x (1 - total / pre_promo_total) over promoted offers.
-- free_night_like: Number of promoted offers whose depth equals whole nights of the stay, within rounding.
-- One dimension at a time; for all of them together, see mart.promotion_target.
-- An offer counts once per source, room, board and policy; promotions with only value adds are left out: no discount.
-- Each dimension is a branch of its own: a median holds all of its values in memory, and where a night is large the
-- dimensions are computed one after another.
WITH asked AS (
    SELECT
        target.source,
        target.market,
        target.product_type,
        target.lead_step,
        target.nights,
        target.weekday,
        sum(target.planned)::BIGINT AS planned,
        sum(target.answered)::BIGINT AS answered,
        sum(target.comparable)::BIGINT AS comparable
    FROM mart.promotion_target AS target
    GROUP BY target.source, target.market, target.product_type, target.lead_step, target.nights, target.weekday
),

promoted AS (
    SELECT
        offer.source,
        offer.market,
        offer.product_type,
        offer.lead_step,
        offer.nights,
        offer.weekday,
        offer.promotion_kinds,
        offer.depth_pct,
        offer.is_free_night_like
    FROM mart.promoted_offer AS offer
),

asked_of AS (
    SELECT
        'all' AS dimension,
        'all' AS value,
        asked.*
    FROM asked

    UNION ALL

    SELECT
        'market' AS dimension,
        asked.market AS value,
        asked.*
    FROM asked

    UNION ALL

    SELECT
        'product_type' AS dimension,
        asked.product_type AS value,
        asked.*
    FROM asked

    UNION ALL

    SELECT
        'lead_days' AS dimension,
        asked.lead_step AS value,
        asked.*
    FROM asked

    UNION ALL

    SELECT
        'nights' AS dimension,
        asked.nights::VARCHAR AS value,
        asked.*
    FROM asked

    UNION ALL

    SELECT
        'weekday' AS dimension,
        asked.weekday::VARCHAR AS value,
        asked.*
    FROM asked
),

promoted_of AS (
    SELECT
        'all' AS dimension,
        'all' AS value,
        promoted.*
    FROM promoted

    UNION ALL

    SELECT
        'market' AS dimension,
        promoted.market AS value,
        promoted.*
    FROM promoted

    UNION ALL

    SELECT
        'product_type' AS dimension,
        promoted.product_type AS value,
        promoted.*
    FROM promoted

    UNION ALL

    SELECT
        'lead_days' AS dimension,
        promoted.lead_step AS value,
        promoted.*
    FROM promoted

    UNION ALL

    SELECT
        'nights' AS dimension,
        promoted.nights::VARCHAR AS value,
        promoted.*
    FROM promoted

    UNION ALL

    SELECT
        'weekday' AS dimension,
        promoted.weekday::VARCHAR AS value,
        promoted.*
    FROM promoted

    UNION ALL

    SELECT
        'promotion_kinds' AS dimension,
        promoted.promotion_kinds AS value,
        promoted.*
    FROM promoted
),

-- Every kind is listed with all cells and offers.
counted AS (
    SELECT
        asked_of.source,
        asked_of.dimension,
        asked_of.value,
        sum(asked_of.planned)::BIGINT AS planned,
        sum(asked_of.answered)::BIGINT AS answered,
        sum(asked_of.comparable)::BIGINT AS comparable
    FROM asked_of
    GROUP BY asked_of.source, asked_of.dimension, asked_of.value

    UNION ALL

    SELECT
        kind.source,
        'promotion_kinds' AS dimension,
        kind.promotion_kinds AS value,
        sum(asked.planned)::BIGINT AS planned,
        sum(asked.answered)::BIGINT AS answered,
        sum(asked.comparable)::BIGINT AS comparable
    FROM (
        SELECT DISTINCT
            promoted.source,
            promoted.promotion_kinds
        FROM promoted
    ) AS kind
    INNER JOIN asked ON asked.source = kind.source
    GROUP BY kind.source, kind.promotion_kinds
),

depth AS (
    SELECT
        promoted_of.source,
        promoted_of.dimension,
        promoted_of.value,
        count(*) AS promoted,
        -- Decimals: a sum of fractions would depend on the order of its rows, by its last bit.
        avg(promoted_of.depth_pct::DECIMAL(38, 9)) AS mean_depth_pct,
        median(promoted_of.depth_pct) AS median_depth_pct,
        count(*) FILTER (WHERE promoted_of.is_free_night_like) AS free_night_like
    FROM promoted_of
    GROUP BY promoted_of.source, promoted_of.dimension, promoted_of.value
)

SELECT
    counted.source,
    counted.dimension,
    counted.value,
    counted.planned,
    counted.answered,
    counted.comparable,
    coalesce(depth.promoted, 0) AS promoted,
    100.0 * coalesce(depth.promoted, 0) / nullif(counted.comparable, 0) AS incidence_pct,
    depth.mean_depth_pct,
    depth.median_depth_pct,
    coalesce(depth.free_night_like, 0) AS free_night_like
FROM counted
LEFT JOIN depth
    ON
        depth.source = counted.source
        AND depth.dimension = counted.dimension
        AND depth.value = counted.value
