-- One row per detail offer whose price with fees deviates: what it is compared with, and what shows it.
-- reference_all_in: reference_answered in currency, at the rate that makes the totals equal, not a reference rate.
-- all_in: Total + mandatory fees in the market, in currency.
-- reference_answered: Total + mandatory fees in the reference market, in its own currency.
-- fees_compared: Number of mandatory fees known in both answers.
-- compared_with: Market that it is compared with; if the reference market deviates, the middle one of those that agree.
-- compared_answered: Total + mandatory fees in the compared_with market, in compared_currency.
-- compared_all_in: compared_answered in currency, at the rate that makes the totals equal.
-- compared_currency: ISO 4217 code of the currency in which the compared_with market was answered.
-- markets_agreed: Markets that agree with each other and outvote the reference market.
-- markets_alike: Markets whose prices with fees deviate as this one does, itself included.
-- standing_markets: Markets that agree with the reference market, itself included.
-- is_lone: Rests on two prices with fees alone.
-- observations: Observations behind it, with their role, without the reference market's.
-- Two markets or more outvote the reference market if their prices with fees agree and they are more than those that
-- may agree with it, itself included. Then the fees that deviate are its own, and all others are compared with the
-- middle one of those that agree.
WITH placed AS MATERIALIZED (
    FROM mart.all_in_vote
),

-- Which markets agree with the reference market's price: one whose fees are unknown may do so, too.
stood AS (
    SELECT
        placed.property_id,
        placed.reference_offer_key,
        any_value(placed.markets_compared) + 1
        - count(DISTINCT placed.market) FILTER (WHERE placed.is_agreed OR placed.is_found) AS markets_left,
        count(DISTINCT placed.market) AS markets_priced,
        list_sort(
            list_distinct(
                list_append(
                    coalesce(list(placed.market) FILTER (WHERE placed.is_standing), []),
                    any_value(placed.reference_market)
                )
            )
        ) AS standing_markets,
        coalesce(
            list(placed.as_witness ORDER BY placed.market, placed.currency) FILTER (WHERE placed.is_standing), []
        ) AS witnesses,
        list_filter(
            any_value(placed.observations),
            LAMBDA item: NOT list_contains(
                list_transform(witnesses, LAMBDA shown: shown['offer_key']),
                item['offer_key']
            )
        ) AS others
    FROM placed
    GROUP BY placed.property_id, placed.reference_offer_key
),

-- What the middle one of those that agree with each other answered, and all prices that show it.
agreed AS (
    SELECT
        placed.property_id,
        placed.reference_offer_key,
        placed.side,
        list_sort(list_distinct(coalesce(list(placed.market) FILTER (WHERE placed.is_agreed), []))) AS markets,
        arg_min(placed, (placed.from_level, placed.market, placed.currency)) FILTER (WHERE placed.is_found) AS middle,
        list(placed.observed ORDER BY placed.market, placed.currency) FILTER (WHERE placed.is_agreed) AS observations,
        list(placed.as_witness ORDER BY placed.market, placed.currency) AS witnesses
    FROM placed
    GROUP BY placed.property_id, placed.reference_offer_key, placed.side
    HAVING bool_or(placed.is_found)
),

-- The reference market's own price is one more vote: two against two accuse neither side.
outvoted AS (
    SELECT agreed.*
    FROM agreed
    INNER JOIN stood
        ON
            stood.property_id = agreed.property_id
            AND stood.reference_offer_key = agreed.reference_offer_key
    LEFT JOIN agreed AS across
        ON
            across.property_id = agreed.property_id
            AND across.reference_offer_key = agreed.reference_offer_key
            AND across.side = -agreed.side
    WHERE
        len(agreed.markets) >= 2
        AND len(agreed.markets) > coalesce(len(across.markets), 0)
        AND len(agreed.markets) > stood.markets_left
)

SELECT
    pair.source,
    pair.property_id,
    pair.market,
    pair.product_type,
    pair.check_in,
    pair.nights,
    pair.party,
    pair.currency,
    pair.room_id,
    pair.board_id,
    pair.policy_key,
    pair.offer_key,
    pair.reference_market,
    pair.total,
    pair.reference_converted,
    pair.gap_pct,
    pair.fees_compared,
    pair.all_in,
    pair.reference_answered,
    pair.reference_equal AS reference_all_in,
    coalesce(middle.market, pair.reference_market) AS compared_with,
    coalesce(middle.all_in, pair.reference_answered) AS compared_answered,
    coalesce(middle.all_in, pair.reference_equal) AS compared_all_in,
    coalesce(middle.currency, pair.reference_currency) AS compared_currency,
    CASE WHEN middle.market IS NULL THEN pair.rate END AS rate,
    pair.rate_date,
    CASE WHEN middle.market IS NULL THEN [] ELSE outvoted.markets END AS markets_agreed,
    CASE WHEN pair.is_agreed THEN agreed.markets ELSE [pair.market] END AS markets_alike,
    stood.standing_markets,
    stood.markets_priced = 1 AS is_lone,
    list_concat(
        [pair.observed],
        CASE
            WHEN middle.market IS NOT NULL
                THEN list_prepend(
                    mart.observation(
                        'compared',
                        middle.source,
                        middle.property_id,
                        middle.offer_key,
                        middle.seen_sweep_id,
                        middle.seen_search_id,
                        middle.seen_offer_no
                    ),
                    list_filter(
                        outvoted.witnesses,
                        LAMBDA item: item['offer_key'] NOT IN (pair.offer_key, middle.offer_key)
                    )
                )
            -- One that agrees with the reference market shows that the market deviates.
            WHEN len(stood.standing_markets) > len(markets_alike) THEN stood.witnesses[:1]
            WHEN stood.markets_priced = 1 THEN []
            ELSE
                list_concat(
                    list_filter(
                        stood.others,
                        LAMBDA item: item['offer_key'] <> pair.offer_key
                    ),
                    stood.witnesses
                )
        END
    ) AS observations,
    pair.reference_offer_key,
    pair.reference_sweep_id,
    pair.reference_search_id,
    pair.reference_offer_no
FROM placed AS pair
INNER JOIN stood
    ON
        stood.property_id = pair.property_id
        AND stood.reference_offer_key = pair.reference_offer_key
LEFT JOIN agreed
    ON
        agreed.property_id = pair.property_id
        AND agreed.reference_offer_key = pair.reference_offer_key
        AND agreed.side = pair.side
LEFT JOIN outvoted
    ON
        outvoted.property_id = pair.property_id
        AND outvoted.reference_offer_key = pair.reference_offer_key
LEFT JOIN placed AS middle
    ON
        middle.property_id = outvoted.property_id
        AND middle.offer_key = outvoted.middle.offer_key
        AND middle.reference_offer_key = outvoted.reference_offer_key
        AND middle.currency = pair.currency
WHERE
    CASE
        WHEN middle.market IS NOT NULL
            THEN
                pair.is_met
                AND NOT (pair.is_agreed AND pair.side = outvoted.side)
                AND 100 * abs(pair.all_in::DOUBLE / middle.all_in::DOUBLE - 1) > pair.disparity_pct
                AND abs(pair.all_in - middle.all_in)
                > mart.tolerance(middle.all_in, pair.tolerance_pct, pair.minor_unit)
        -- Where its currency is not theirs, fees that deviate in the other direction deviate from all others, too.
        ELSE pair.is_found AND outvoted.side IS DISTINCT FROM pair.side
    END

UNION ALL BY NAME

SELECT
    outvoted.middle.source,
    outvoted.property_id,
    outvoted.middle.reference_market AS market,
    outvoted.middle.product_type,
    outvoted.middle.check_in,
    outvoted.middle.nights,
    outvoted.middle.party,
    outvoted.middle.reference_currency AS currency,
    outvoted.middle.room_id,
    outvoted.middle.board_id,
    outvoted.middle.policy_key,
    outvoted.reference_offer_key AS offer_key,
    outvoted.middle.reference_market,
    outvoted.middle.reference_total AS total,
    outvoted.middle.reference_total AS reference_converted,
    -100 * outvoted.middle.gap_pct / (100 + outvoted.middle.gap_pct) AS gap_pct,
    outvoted.middle.fees_compared,
    outvoted.middle.reference_answered AS all_in,
    outvoted.middle.reference_answered,
    outvoted.middle.reference_answered AS reference_all_in,
    outvoted.middle.market AS compared_with,
    outvoted.middle.all_in AS compared_answered,
    CASE
        WHEN outvoted.middle.currency_basis = 'same' THEN outvoted.middle.all_in
        ELSE
            mart.converted(
                outvoted.middle.all_in,
                outvoted.middle.reference_total,
                outvoted.middle.total,
                unit.minor_unit
            )
    END AS compared_all_in,
    outvoted.middle.currency AS compared_currency,
    1 / outvoted.middle.rate AS rate,
    outvoted.middle.rate_date,
    outvoted.markets AS markets_agreed,
    outvoted.markets AS markets_alike,
    [] AS standing_markets,
    FALSE AS is_lone,
    list_concat(
        outvoted.observations,
        list_filter(
            outvoted.witnesses,
            LAMBDA item: NOT list_contains(
                list_transform(outvoted.observations, LAMBDA shown: shown['offer_key']),
                item['offer_key']
            )
        )
    ) AS observations,
    outvoted.reference_offer_key,
    outvoted.middle.reference_sweep_id,
    outvoted.middle.reference_search_id,
    outvoted.middle.reference_offer_no
FROM outvoted
LEFT JOIN ref.currency AS unit ON unit.currency = outvoted.middle.reference_currency
