-- One row per finding: an offer whose total, price before promotions, discount and named promotions do not agree.
-- size_pct: Phantom: percent named; unnamed: percent given; wrong: percentage points off; above: percent added.
-- amount: In currency. Phantom, wrong: discount stated but not given; unnamed: discount given; above: amount added.
-- Prices that differ by at most the currency's smallest unit count as equal: see mart.taken_off.
WITH judged AS (
    SELECT
        offer.*,
        mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) AS taken_off,
        coalesce(offer.promised_pct, nullif(offer.discount_pct, 0)) AS told_pct,
        -- Rounded: otherwise the last bits of fractions decide the severity of five points.
        round(abs(offer.discount_pct - offer.depth_pct), 9) AS points_off,
        analysis.discount_rounding * (1 + 100 / offer.pre_promo_total::DOUBLE) AS rounding_points
    FROM mart.offer_promotion AS offer
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
    WHERE offer.pre_promo_total > 0 AND offer.total IS NOT NULL
),

broken AS (
    SELECT
        judged.*,
        unnest(
            [
                CASE WHEN judged.taken_off < 0 THEN 'total_above_reference' END,
                CASE WHEN judged.taken_off = 0 AND judged.names_price_promotion THEN 'phantom_promotion' END,
                CASE WHEN judged.taken_off > 0 AND NOT judged.names_price_promotion THEN 'unnamed_promotion' END,
                CASE WHEN judged.taken_off >= 0 AND judged.points_off > judged.rounding_points THEN 'wrong_discount' END
            ]
        ) AS rule
    FROM judged
),

found AS (
    SELECT
        broken.*,
        CASE broken.rule
            WHEN 'phantom_promotion' THEN broken.told_pct
            WHEN 'wrong_discount' THEN broken.points_off
            ELSE abs(broken.depth_pct)
        END AS size_pct,
        CASE
            WHEN round(abs(broken.depth_pct), 1) = 0 THEN 'less than 0.1%'
            ELSE format('{:.1f}%', abs(broken.depth_pct))
        END AS size_said,
        CASE broken.rule
            WHEN 'phantom_promotion' THEN try_cast(broken.pre_promo_total * broken.told_pct / 100 AS DECIMAL(18, 4))
            WHEN 'wrong_discount'
                THEN try_cast(broken.total - broken.pre_promo_total * (1 - broken.discount_pct / 100) AS DECIMAL(18, 4))
            ELSE abs(broken.taken_off)::DECIMAL(18, 4)
        END AS amount
    FROM broken
    WHERE broken.rule IS NOT NULL
)

SELECT
    found.rule,
    3 AS rule_version,
    mart.subject_key(found.rule, concat_ws('|', found.source, found.property_id, found.offer_key)) AS subject_key,
    mart.flag_id(found.rule, subject_key) AS flag_id,
    mart.severity(found.size_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    found.size_pct,
    found.amount,
    found.source,
    found.property_id,
    found.market,
    found.product_type,
    found.check_in,
    found.nights,
    found.party,
    found.currency,
    CASE found.rule
        WHEN 'phantom_promotion'
            THEN
                format(
                    '"{}" is named, and the total of {:,.2f}{} is the price before promotions{}.',
                    coalesce(found.promotion_text, replace(found.promotion_kinds, '_', ' ')), found.total::DOUBLE,
                    coalesce(' ' || found.currency, ''),
                    CASE
                        WHEN found.total <> found.pre_promo_total
                            THEN format(', {:,.2f}, but for rounding', found.pre_promo_total::DOUBLE)
                        ELSE ''
                    END
                )
        WHEN 'unnamed_promotion'
            THEN
                format(
                    'The total of {:,.2f}{} is {} below {:,.2f}, and no promotion explains it.',
                    found.total::DOUBLE, coalesce(' ' || found.currency, ''), found.size_said,
                    found.pre_promo_total::DOUBLE
                )
        WHEN 'wrong_discount'
            THEN
                format(
                    'The stated discount is {:.6g}%, but {:,.2f}{} instead of {:,.2f} is {:,.2f}% off.',
                    round(found.discount_pct, 2), found.total::DOUBLE, coalesce(' ' || found.currency, ''),
                    found.pre_promo_total::DOUBLE, CASE WHEN found.taken_off = 0 THEN 0 ELSE found.depth_pct END
                )
        ELSE
            format(
                'The total of {:,.2f}{} is {} above the price before promotions of {:,.2f}.',
                found.total::DOUBLE, coalesce(' ' || found.currency, ''), found.size_said,
                found.pre_promo_total::DOUBLE
            )
    END AS finding,
    [
        mart.observation(
            'offer',
            found.source,
            found.property_id,
            found.offer_key,
            found.seen_sweep_id,
            found.seen_search_id,
            found.seen_offer_no
        )
    ] AS evidence,
    mart.conversion(NULL, NULL, NULL, NULL) AS fx,
    found.offer_key,
    found.room_id,
    found.board_id,
    found.policy_key,
    found.total,
    found.pre_promo_total,
    found.discount_pct,
    found.depth_pct,
    found.promotion_text
FROM found
CROSS JOIN ref.analysis AS analysis
