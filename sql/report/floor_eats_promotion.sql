-- One row per finding: a hotel offer whose promotion cannot be passed on in full because of the floor.
-- An offer answered in several currencies counts once: in the first, alphabetically, in which the floor takes a part.
-- size_pct: Percentage points of depth_pct that the floor takes away.
-- amount: Part of the promotion that the floor takes away, in currency.
-- selling_price: Your latest price for the stay and party, seen at most price_days from the floor; NULL: none.
-- sellable_pct: Depth that can be passed on: 100 x (1 - the higher of floor and selling_price / pre_promo_total).
-- It is NULL if selling_price is of several rooms: it is for all of them together, and the promotion is of one.
WITH eaten AS (
    SELECT
        offer.*,
        least(offer.floor, offer.pre_promo_total) - offer.total AS taken,
        100 * taken::DOUBLE / offer.pre_promo_total::DOUBLE AS size_pct
    FROM mart.offer_promotion AS offer
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
    WHERE
        offer.product_type = 'Hotel'
        -- The first condition is known before the join; the second excludes what is only rounded.
        AND offer.total < offer.pre_promo_total
        AND mart.taken_off(offer.total, offer.pre_promo_total, unit.minor_unit) > 0
        AND offer.floor::DOUBLE > offer.total::DOUBLE * (1 + analysis.tolerance_pct / 100)
        AND analysis.total_role <> 'net'
    QUALIFY
        row_number() OVER (
            PARTITION BY
                offer.source,
                offer.property_id,
                offer.market,
                offer.product_type,
                offer.check_in,
                offer.nights,
                offer.party,
                offer.room_stay_id,
                offer.room_id,
                offer.board_id,
                offer.policy_key
            ORDER BY offer.currency, offer.offer_key
        ) = 1
),

-- A selling price without room, board or policy may be for any of them.
sold AS (
    SELECT
        eaten.source,
        eaten.property_id,
        eaten.offer_key,
        arg_max(price.price, { 'at': price.observed_at, 'input': price.input_id, 'line': price.line_no })
            AS selling_price
    FROM eaten
    CROSS JOIN ref.analysis AS analysis
    INNER JOIN mart.selling_price AS price
        ON
            price.property_id = eaten.property_id
            AND price.market = eaten.market
            AND price.product_type = eaten.product_type
            AND price.check_in = eaten.check_in
            AND price.nights = eaten.nights
            AND price.party = eaten.party
            AND price.currency = eaten.currency
            AND coalesce(price.room_id = eaten.room_id, price.room_id IS NULL)
            AND coalesce(price.board_id = eaten.board_id, price.board_id IS NULL)
            AND coalesce(price.policy_key = eaten.policy_key, price.policy_key IS NULL)
            AND abs(date_diff('second', price.observed_at, eaten.last_seen_at)) / 86400.0 <= analysis.price_days
    GROUP BY eaten.source, eaten.property_id, eaten.offer_key
)

SELECT
    'floor_eats_promotion' AS rule,
    3 AS rule_version,
    mart.subject_key(rule, concat_ws('|', eaten.source, eaten.property_id, eaten.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(eaten.size_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    eaten.size_pct,
    eaten.taken::DECIMAL(18, 4) AS amount,
    eaten.source,
    eaten.property_id,
    eaten.market,
    eaten.product_type,
    eaten.check_in,
    eaten.nights,
    eaten.party,
    eaten.currency,
    format(
        'The promotion takes {:.1f}% off {:,.2f} {}, but the floor of {:,.2f} allows {}.',
        eaten.depth_pct, eaten.pre_promo_total::DOUBLE, coalesce(eaten.currency, ''), eaten.floor::DOUBLE,
        CASE
            WHEN round(eaten.depth_pct - eaten.size_pct, 1) <= 0 THEN 'no discount'
            ELSE format('only {:.1f}%', eaten.depth_pct - eaten.size_pct)
        END
    ) AS finding,
    [
        mart.observation(
            'offer',
            eaten.source,
            eaten.property_id,
            eaten.offer_key,
            eaten.seen_sweep_id,
            eaten.seen_search_id,
            eaten.seen_offer_no
        )
    ] AS evidence,
    mart.conversion(NULL, NULL, NULL, NULL) AS fx,
    eaten.offer_key,
    eaten.room_id,
    eaten.board_id,
    eaten.policy_key,
    eaten.total,
    eaten.pre_promo_total,
    eaten.floor,
    eaten.depth_pct,
    sold.selling_price,
    CASE
        WHEN sold.selling_price IS NULL OR NOT contains(eaten.party, '+')
            THEN 100 * (1 - greatest(eaten.floor, sold.selling_price)::DOUBLE / eaten.pre_promo_total::DOUBLE)
    END AS sellable_pct,
    eaten.promotion_text
FROM eaten
CROSS JOIN ref.analysis AS analysis
LEFT JOIN sold
    ON
        sold.source = eaten.source
        AND sold.property_id = eaten.property_id
        AND sold.offer_key = eaten.offer_key
