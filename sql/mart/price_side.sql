-- One row per pair of mart.price_counterpart, and the markets on either side where it is unknown which side deviates.
-- split_markets: Markets on the side that deviates from the reference market; empty: it is known which side is wrong.
-- standing_markets: Markets on the reference market's side, itself included; empty: it is known which side is wrong.
-- split_witnesses: Observations of both sides, if the price that deviates is the reference market's.
-- If markets agree by halves, or if as many converted prices oppose those that agree in one currency, both sides are
-- named.
WITH pair AS MATERIALIZED (
    FROM mart.price_counterpart
),

-- Markets that deviate as a price does, and those that stand by the reference market: of a converted price, in several
-- currencies; of another, where its currency alone is split in halves.
sides AS (
    SELECT
        side.source,
        side.property_id,
        side.offer_key,
        list(DISTINCT side.market ORDER BY side.market) FILTER (WHERE side.is_alike) AS alike,
        list_sort(
            list_append(
                coalesce(
                    list_filter(
                        list(DISTINCT side.market) FILTER (WHERE side.is_standing),
                        LAMBDA market: NOT list_contains(alike, market)
                    ),
                    []
                ),
                any_value(side.reference_market)
            )
        ) AS standing
    FROM (
        SELECT
            accused.source,
            accused.property_id,
            accused.offer_key,
            accused.reference_market,
            pair.market,
            pair.currency,
            pair.currency_basis,
            pair.is_standing,
            accused.currency_basis = 'same' AS is_of_one_currency,
            accused.are_halves,
            (pair.currency_basis = 'same' OR pair.is_beyond)
            AND pair.is_apart
            AND sign(pair.gap) = sign(accused.gap)
            AND abs((100 + pair.gap_pct) / (100 + accused.gap_pct) - 1) <= accused.agreed_pct / 100 AS is_alike
        FROM pair AS accused
        INNER JOIN pair
            ON
                (pair.source = accused.source OR accused.is_shown_by_other)
                AND pair.property_id = accused.property_id
                AND pair.reference_offer_key = accused.reference_offer_key
                AND pair.reference_sweep_id = accused.reference_sweep_id
        WHERE
            accused.is_accused
            AND NOT accused.is_beside
            AND (accused.currency_basis = 'reference_rate' OR accused.are_halves)
    ) AS side
    GROUP BY side.source, side.property_id, side.offer_key
    HAVING
        len(alike) >= len(standing)
        -- One rate concerns one currency.
        AND (
            count(DISTINCT side.currency) FILTER (WHERE side.is_alike) > 1
            OR (any_value(side.is_of_one_currency) AND len(alike) > 1)
        )
        -- Without another market in its own currency, the reference market stands alone: converted prices decide,
        -- unless they agree by halves.
        AND (bool_or(side.currency_basis = 'same') OR any_value(side.are_halves))
),

-- Where markets in its currency outvote the reference market, and converted prices agree with it: both sides, if it
-- has as many. Converted prices never outvote markets that agree in one currency, but they may be right.
defended AS (
    SELECT
        suspect.source,
        suspect.property_id,
        suspect.reference_offer_key,
        list(DISTINCT side.market ORDER BY side.market) FILTER (
            WHERE
            sign(side.gap) = suspect.side
            AND (side.is_alike OR (side.is_leaning AND side.from_level <= side.agreed_pct / 100))
        ) AS against,
        list_sort(
            list_append(
                coalesce(
                    list_filter(
                        list(DISTINCT side.market) FILTER (
                            WHERE
                            side.is_standing
                            AND (side.is_best OR coalesce(100 * side.from_level > abs(side.gap_pct), TRUE))
                        ),
                        LAMBDA market: NOT list_contains(against, market)
                    ),
                    []
                ),
                any_value(side.reference_market)
            )
        ) AS standing,
        list(side.as_witness ORDER BY side.market, side.currency) FILTER (
            WHERE side.is_standing OR side.is_alike
        ) AS witnesses
    FROM (
        SELECT DISTINCT
            found.source,
            found.property_id,
            found.reference_offer_key,
            sign(found.gap) AS side
        FROM pair AS found
        WHERE
            found.is_found
            AND found.is_best
            AND found.currency_basis = 'same'
            AND found.is_reference_apart
            AND found.is_of_most
            AND found.markets_agreed >= 2
            AND NOT found.is_shown_by_other
    ) AS suspect
    INNER JOIN pair AS side
        ON
            side.source = suspect.source
            AND side.property_id = suspect.property_id
            AND side.reference_offer_key = suspect.reference_offer_key
    GROUP BY suspect.source, suspect.property_id, suspect.reference_offer_key
    HAVING len(standing) >= len(against)
)

SELECT
    pair.*,
    coalesce(sides.alike, defended.against, []) AS split_markets,
    coalesce(sides.standing, defended.standing, []) AS standing_markets,
    defended.witnesses AS split_witnesses
FROM pair
LEFT JOIN sides
    ON
        sides.source = pair.source
        AND sides.property_id = pair.property_id
        AND sides.offer_key = pair.offer_key
LEFT JOIN defended
    ON
        defended.source = pair.source
        AND defended.property_id = pair.property_id
        AND defended.reference_offer_key = pair.reference_offer_key
        AND NOT pair.is_accused
