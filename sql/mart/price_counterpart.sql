-- One row per pair of mart.price_vote, and the price in its own currency that it is compared with, where there is one.
-- is_found: Whether the market deviates from the reference market, and no other market may still decide.
-- is_accused: Whether the market is the one that deviates, not the reference market, or deviates from the others, too.
-- middle: Median price of its currency, if converted; if the reference market deviates, of those that agree on it.
-- is_beside: Whether the price is compared with the middle one, not with the reference market's.
-- is_of_two: Whether only two markets were answered in the currency, so that its rate decides which one deviates.
-- from_middle_pct: Gap to the middle price in percent of it; > 0: dearer.
-- alike_markets: Markets in the same currency that all deviate; empty: they do not.
-- A market that is not in the reference market's currency must also deviate from the middle one of its own currency,
-- and is compared with that one without conversion. If that one is beyond all rates of 31 days too, either both are
-- dearer or the supplier has a rate of its own: prices of one property cannot tell which.
WITH pair AS MATERIALIZED (
    SELECT
        vote.*,
        vote.is_apart AND NOT vote.is_awaiting AS is_found
    FROM mart.price_vote AS vote
),

-- Of markets in one currency whose prices are converted, the middle one; of two, the one that rates explain better.
central AS (
    SELECT
        placed.source,
        placed.property_id,
        placed.reference_offer_key,
        placed.currency,
        arg_min(
            {
                'market': placed.market,
                'total': placed.total,
                'gap': placed.gap,
                'is_apart': placed.is_apart,
                'is_beyond': placed.is_apart AND placed.is_beyond,
                -- No rate explains it if markets in other currencies meet the reference market at tonight's rates.
                'is_off': placed.is_apart AND (placed.is_beyond OR placed.is_reference_met),
                'observation': mart.observation(
                    'compared',
                    placed.source,
                    placed.property_id,
                    placed.offer_key,
                    placed.seen_sweep_id,
                    placed.seen_search_id,
                    placed.seen_offer_no
                )
            },
            (
                abs(2 * placed.place - placed.places - 1),
                placed.is_beyond,
                abs(placed.unexplained_pct),
                abs(placed.gap),
                placed.market
            )
        ) AS offer,
        min(sign(placed.gap)) = max(sign(placed.gap)) AND bool_and(placed.is_apart AND placed.is_beyond)
            AS are_all_beyond,
        list(DISTINCT placed.market ORDER BY placed.market) AS markets,
        count(DISTINCT placed.market) = 2 AS is_of_two
    FROM (
        SELECT
            pair.*,
            row_number() OVER (in_currency ORDER BY pair.gap, pair.market) AS place,
            count(*) OVER in_currency AS places,
            count(*) FILTER (WHERE pair.is_standing) OVER of_offer
            > count(*) FILTER (WHERE pair.is_standing) OVER in_currency AS is_reference_met
        FROM pair
        WHERE pair.currency_basis = 'reference_rate'
        WINDOW
            of_offer AS (PARTITION BY pair.source, pair.property_id, pair.reference_offer_key),
            in_currency AS (PARTITION BY pair.source, pair.property_id, pair.reference_offer_key, pair.currency)
    ) AS placed
    GROUP BY placed.source, placed.property_id, placed.reference_offer_key, placed.currency
    HAVING count(DISTINCT placed.market) > 1
),

-- Where the reference market deviates: of the markets in its currency that show it, the one closest to their level.
agreed AS (
    SELECT
        pair.source,
        pair.property_id,
        pair.reference_offer_key,
        arg_min(
            {
                'market': pair.market,
                'total': pair.total,
                'gap': pair.gap,
                'is_apart': FALSE,
                'is_beyond': FALSE,
                'is_off': FALSE,
                'observation': mart.observation(
                    'compared',
                    pair.source,
                    pair.property_id,
                    pair.offer_key,
                    pair.seen_sweep_id,
                    pair.seen_search_id,
                    pair.seen_offer_no
                )
            },
            (abs(100 + pair.gap_pct - pair.level_pct), pair.market)
        ) AS offer
    FROM pair
    WHERE
        pair.is_found
        AND pair.is_reference_apart
        AND pair.is_of_most
        AND pair.currency_basis = 'same'
    GROUP BY pair.source, pair.property_id, pair.reference_offer_key
)

SELECT
    pair.*,
    pair.is_found
    AND (
        NOT (pair.is_reference_apart AND pair.is_of_most)
        -- Where most agree with each other, one between them and the reference market deviates from both.
        OR (
            pair.currency_basis = 'same'
            AND pair.markets_agreed >= 2
            AND 2 * pair.markets_agreed > pair.markets_voting
            AND pair.from_level > pair.alike_pct / 100
        )
    ) AS is_accused,
    coalesce(central.offer, agreed.offer) AS middle,
    middle IS NOT NULL AND NOT middle['is_beyond'] AS is_beside,
    coalesce(is_beside AND central.is_of_two, FALSE) AS is_of_two,
    100 * (pair.total - middle['total'])::DOUBLE / middle['total']::DOUBLE AS from_middle_pct,
    -- A rate concerns all markets in its currency: where one of them meets the reference market, the rate is right.
    CASE WHEN central.are_all_beyond THEN central.markets ELSE [] END AS alike_markets
FROM pair
LEFT JOIN central
    ON
        central.source = pair.source
        AND central.property_id = pair.property_id
        AND central.reference_offer_key = pair.reference_offer_key
        AND central.currency = pair.currency
        AND pair.currency_basis = 'reference_rate'
        -- A market that deviates in the other direction, and not by a rate, is not a valid reference.
        AND NOT (central.offer.is_off AND sign(central.offer.gap) <> sign(pair.gap))
LEFT JOIN agreed
    ON
        agreed.source = pair.source
        AND agreed.property_id = pair.property_id
        AND agreed.reference_offer_key = pair.reference_offer_key
        AND pair.currency_basis = 'same'
