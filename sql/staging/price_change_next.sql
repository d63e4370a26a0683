-- One row per source, market, product type, currency, promotion at either end or not, and size of change in this sweep.
-- Offers are compared with themselves as last seen. Changes are counted by their size, so that the median of a
-- market can be found however many ranges its properties are published in.
WITH seen_again AS (
    SELECT
        observed.source,
        observed.market,
        observed.product_type,
        observed.currency,
        observed.total,
        observed.pre_promo_total,
        observed.before.total AS total_before,
        observed.before.pre_promo_total AS pre_promo_total_before,
        observed.is_whole AND observed.before.is_whole AS is_whole
    FROM night.offer_observed AS observed
    WHERE observed.before.is_offered

    UNION ALL

    -- An offer gone for no longer than a market may be silent was last seen before that.
    SELECT
        observed.source,
        observed.market,
        observed.product_type,
        observed.currency,
        observed.total,
        observed.pre_promo_total,
        sold.total AS total_before,
        sold.pre_promo_total AS pre_promo_total_before,
        observed.is_whole AND sold.is_whole AS is_whole
    FROM night.offer_observed AS observed
    INNER JOIN state.offer_closed AS sold
        ON
            sold.source = observed.source
            AND sold.property_id = observed.property_id
            AND sold.offer_key = observed.offer_key
            AND sold.valid_to = observed.before.valid_from
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE
        NOT observed.before.is_offered
        AND observed.before.valid_from >= sweep.started_at - to_days(analysis.silent_nights)
),

pair AS (
    SELECT
        seen_again.source,
        seen_again.market,
        seen_again.product_type,
        seen_again.currency,
        coalesce(mart.taken_off(seen_again.total, seen_again.pre_promo_total, unit.minor_unit) <= 0, TRUE)
        AND coalesce(
            mart.taken_off(seen_again.total_before, seen_again.pre_promo_total_before, unit.minor_unit) <= 0, TRUE
        ) AS is_plain,
        ln(seen_again.total::DOUBLE / seen_again.total_before::DOUBLE) AS change
    FROM seen_again
    -- Only where it matters: most offers have no promotion.
    LEFT JOIN ref.currency AS unit
        ON
            unit.currency = CASE
                WHEN
                    seen_again.total < seen_again.pre_promo_total
                    OR seen_again.total_before < seen_again.pre_promo_total_before
                    THEN seen_again.currency
            END
    WHERE
        seen_again.total > 0
        AND seen_again.total_before > 0
        -- A dearer product of the key may represent an unreadable one: that is not a change of price.
        AND (seen_again.source = 'multi' OR seen_again.is_whole)
)

SELECT
    sweep.sweep_id,
    pair.source,
    pair.market,
    pair.product_type,
    pair.currency,
    pair.is_plain,
    round(pair.change * 1000)::INTEGER AS change_step,
    count(*) AS pairs,
    -- Sums of floats differ by the order of the rows; sums of whole billionths do not.
    sum(round(pair.change * 1e9)::HUGEINT) / 1e9 AS drift
FROM pair
CROSS JOIN night.sweep AS sweep
GROUP BY sweep.sweep_id, pair.source, pair.market, pair.product_type, pair.currency, pair.is_plain, change_step
