-- One row per source, market, product type, promotion at either end or not, and size of change in this sweep.
-- Offers are compared with themselves as last seen. Changes are counted by their size, so that the median of a
-- market can be found however many ranges its properties are published in.
WITH before AS (
    SELECT
        offer.source,
        offer.property_id,
        offer.offer_key,
        offer.total,
        offer.pre_promo_total,
        offer.is_whole
    FROM state.offer_open AS offer
    WHERE offer.is_offered

    UNION ALL

    -- What was gone for no longer than a market is silent was last seen before that.
    SELECT
        sold.source,
        sold.property_id,
        sold.offer_key,
        sold.total,
        sold.pre_promo_total,
        sold.is_whole
    FROM state.offer_open AS gone
    INNER JOIN state.offer_closed AS sold
        ON
            sold.source = gone.source
            AND sold.property_id = gone.property_id
            AND sold.offer_key = gone.offer_key
            AND sold.valid_to = gone.valid_from
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE
        NOT gone.is_offered
        AND gone.valid_from >= sweep.started_at - to_days(analysis.silent_nights)
),

pair AS (
    SELECT
        observed.source,
        observed.market,
        observed.product_type,
        coalesce(observed.total >= observed.pre_promo_total, TRUE)
        AND coalesce(before.total >= before.pre_promo_total, TRUE) AS is_plain,
        ln(observed.total::DOUBLE / before.total::DOUBLE) AS change
    FROM night.offer_observed AS observed
    INNER JOIN before
        ON
            before.source = observed.source
            AND before.property_id = observed.property_id
            AND before.offer_key = observed.offer_key
            AND before.total > 0
            -- A dearer product of the key stands in for one that could not be read: that is no change of price.
            AND (observed.source = 'multi' OR (observed.is_whole AND before.is_whole))
    WHERE observed.total > 0
)

SELECT
    sweep.sweep_id,
    pair.source,
    pair.market,
    pair.product_type,
    pair.is_plain,
    round(pair.change * 1000)::INTEGER AS change_step,
    count(*) AS pairs,
    -- Sums of floats differ by the order of the rows; sums of whole billionths do not.
    sum(round(pair.change * 1e9)::HUGEINT) / 1e9 AS drift
FROM pair
CROSS JOIN night.sweep AS sweep
GROUP BY sweep.sweep_id, pair.source, pair.market, pair.product_type, pair.is_plain, change_step
