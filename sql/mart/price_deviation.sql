-- One row per source and offer whose price deviates: what it is compared with, and what shows it.
-- compared_with: Market that it is compared with; if the reference market deviates, the median one of those that agree.
-- compared_total: Total in the compared_with market, in currency; converted if it was answered in another currency.
-- compared_answered: The same total as answered, in compared_currency.
-- compared_currency: ISO 4217 code of the currency in which the compared_with market was answered.
-- currency_basis: `same`: both answered in currency; `reference_rate`: one converted at the reference rate of the day.
-- unexplained_pct: Gap in percent that no reference rate of eight days, nor other markets in its currency, explain.
-- alike_markets: Markets in the same currency that all deviate; empty: they do not.
-- is_of_two: Whether only two markets were answered in the currency, so that its rate decides which one deviates.
-- is_in_disagreement: Whether the other markets do not agree with each other.
-- is_unconfirmed: Whether others were compared, too, and none agrees with the compared_with market.
-- split_markets: Markets on the side of this price, if it is unknown which side deviates.
-- standing_markets: Markets on the other side, if it is unknown which side deviates.
-- evidence: Observations behind the deviation, with their role; `compared`: in its currency; `witness`: another market.
-- A market that is not in the reference market's currency must also deviate from the middle one of its own currency,
-- and is compared with that one without conversion. If that one is beyond all rates of 31 days too, either both are
-- dearer or the supplier has a rate of its own: prices of one property cannot tell which.
-- If markets agree by halves, or if as many converted prices oppose those that agree in one currency, both sides are
-- named.
WITH pair AS MATERIALIZED (
    FROM mart.price_vote
),

stood AS (
    SELECT
        pair.* EXCLUDE (from_level),
        abs(100 + pair.gap_pct - pair.level_pct) AS from_level
    FROM pair
    WHERE pair.is_apart AND NOT pair.is_awaiting
),

-- Where prices of the other source show which market deviates: those prices, as witnesses.
lent AS (
    SELECT
        borrowing.source,
        borrowing.property_id,
        borrowing.reference_offer_key,
        list(lender.as_witness ORDER BY lender.market, lender.currency)
        || [
            mart.observation(
                'witness',
                any_value(lender.source),
                borrowing.property_id,
                borrowing.reference_offer_key,
                any_value(lender.reference_sweep_id),
                any_value(lender.reference_search_id),
                any_value(lender.reference_offer_no)
            )
        ] AS witnesses
    FROM (
        SELECT DISTINCT
            stood.source,
            stood.property_id,
            stood.reference_offer_key,
            stood.reference_sweep_id
        FROM stood
        WHERE stood.is_shown_by_other
    ) AS borrowing
    INNER JOIN pair AS lender
        ON
            lender.property_id = borrowing.property_id
            AND lender.reference_offer_key = borrowing.reference_offer_key
            AND lender.reference_sweep_id = borrowing.reference_sweep_id
            AND lender.source <> borrowing.source
    WHERE lender.is_best
    GROUP BY borrowing.source, borrowing.property_id, borrowing.reference_offer_key
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
        stood.source,
        stood.property_id,
        stood.reference_offer_key,
        arg_min(
            {
                'market': stood.market,
                'total': stood.total,
                'gap': stood.gap,
                'is_apart': FALSE,
                'is_beyond': FALSE,
                'is_off': FALSE,
                'observation': mart.observation(
                    'compared',
                    stood.source,
                    stood.property_id,
                    stood.offer_key,
                    stood.seen_sweep_id,
                    stood.seen_search_id,
                    stood.seen_offer_no
                )
            },
            (stood.from_level, stood.market)
        ) AS offer
    FROM stood
    WHERE
        stood.is_reference_apart
        AND stood.is_of_most
        AND stood.currency_basis = 'same'
    GROUP BY stood.source, stood.property_id, stood.reference_offer_key
),

-- What each is compared with: the middle one of its currency, or of those that agree; else the reference market, at the
-- reference rate.
measured AS (
    SELECT
        stood.*,
        coalesce(central.offer, agreed.offer) AS middle,
        middle IS NOT NULL AND NOT middle['is_beyond'] AS is_beside, -- noqa: RF02
        coalesce(is_beside AND central.is_of_two, FALSE) AS is_of_two, -- noqa: RF02
        100 * (stood.total - middle['total'])::DOUBLE / middle['total']::DOUBLE AS from_middle_pct, -- noqa: RF02
        -- A rate concerns all markets in its currency: where one of them meets the reference market, the rate is right.
        CASE WHEN central.are_all_beyond THEN central.markets ELSE [] END AS alike_markets
    FROM stood
    LEFT JOIN central
        ON
            central.source = stood.source
            AND central.property_id = stood.property_id
            AND central.reference_offer_key = stood.reference_offer_key
            AND central.currency = stood.currency
            AND stood.currency_basis = 'reference_rate'
            -- A market that deviates in the other direction, and not by a rate, is not a valid reference.
            AND NOT (central.offer.is_off AND sign(central.offer.gap) <> sign(stood.gap))
    LEFT JOIN agreed
        ON
            agreed.source = stood.source
            AND agreed.property_id = stood.property_id
            AND agreed.reference_offer_key = stood.reference_offer_key
            AND stood.currency_basis = 'same'
    WHERE NOT (stood.is_reference_apart AND stood.is_of_most)
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
                        LAMBDA market: NOT list_contains(alike, market) -- noqa: RF02
                    ),
                    []
                ),
                any_value(side.reference_market)
            )
        ) AS standing
    FROM (
        SELECT
            measured.source,
            measured.property_id,
            measured.offer_key,
            measured.reference_market,
            pair.market,
            pair.currency,
            pair.currency_basis,
            pair.is_standing,
            measured.currency_basis = 'same' AS is_of_one_currency,
            measured.are_halves,
            (pair.currency_basis = 'same' OR pair.is_beyond)
            AND pair.is_apart
            AND sign(pair.gap) = sign(measured.gap)
            AND abs((100 + pair.gap_pct) / (100 + measured.gap_pct) - 1) <= measured.agreed_pct / 100 AS is_alike
        FROM measured
        INNER JOIN pair
            ON
                (pair.source = measured.source OR measured.is_shown_by_other)
                AND pair.property_id = measured.property_id
                AND pair.reference_offer_key = measured.reference_offer_key
                AND pair.reference_sweep_id = measured.reference_sweep_id
        WHERE
            NOT measured.is_beside
            AND (measured.currency_basis = 'reference_rate' OR measured.are_halves)
    ) AS side
    GROUP BY side.source, side.property_id, side.offer_key
    HAVING
        len(alike) >= len(standing) -- noqa: RF02
        -- One rate concerns one currency.
        AND (
            count(DISTINCT side.currency) FILTER (WHERE side.is_alike) > 1
            OR (any_value(side.is_of_one_currency) AND len(alike) > 1) -- noqa: RF02
        )
        -- Without another market in its own currency, the reference market stands alone: converted prices decide,
        -- unless they agree by halves.
        AND (bool_or(side.currency_basis = 'same') OR any_value(side.are_halves))
),

-- Whether a rate or prices deviate, all markets together say: those in its currency, and those that outvote them. So do
-- they where none agrees with the reference market.
together AS (
    SELECT
        measured.source,
        measured.property_id,
        measured.offer_key,
        list(
            mart.observation(
                CASE
                    WHEN measured.currency_basis = 'reference_rate' AND pair.currency = measured.currency
                        THEN 'compared'
                    ELSE 'witness'
                END,
                pair.source,
                pair.property_id,
                pair.offer_key,
                pair.seen_sweep_id,
                pair.seen_search_id,
                pair.seen_offer_no
            )
            ORDER BY pair.market, pair.currency
        ) AS observations
    FROM measured
    INNER JOIN pair
        ON
            pair.source = measured.source
            AND pair.property_id = measured.property_id
            AND pair.reference_offer_key = measured.reference_offer_key
            AND pair.offer_key <> measured.offer_key
    LEFT JOIN sides
        ON
            sides.source = measured.source
            AND sides.property_id = measured.property_id
            AND sides.offer_key = measured.offer_key
    WHERE
        (
            measured.middle IS NOT NULL
            OR sides.offer_key IS NOT NULL
            OR (measured.is_reference_alone AND pair.market <> measured.market)
        )
        AND NOT measured.is_beside
    GROUP BY measured.source, measured.property_id, measured.offer_key
),

-- Where markets in its currency outvote the reference market, and converted prices agree with it: both sides, if it
-- has as many. Converted prices never outvote markets that agree in one currency, but they may be right.
defended AS (
    SELECT
        accused.source,
        accused.property_id,
        accused.reference_offer_key,
        list(DISTINCT side.market ORDER BY side.market) FILTER (
            WHERE
            sign(side.gap) = accused.side
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
                        LAMBDA market: NOT list_contains(against, market) -- noqa: RF02
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
            stood.source,
            stood.property_id,
            stood.reference_offer_key,
            sign(stood.gap) AS side
        FROM stood
        WHERE
            stood.is_best
            AND stood.currency_basis = 'same'
            AND stood.is_reference_apart
            AND stood.is_of_most
            AND stood.markets_agreed >= 2
            AND NOT stood.is_shown_by_other
    ) AS accused
    INNER JOIN pair AS side
        ON
            side.source = accused.source
            AND side.property_id = accused.property_id
            AND side.reference_offer_key = accused.reference_offer_key
    GROUP BY accused.source, accused.property_id, accused.reference_offer_key
    HAVING len(standing) >= len(against) -- noqa: RF02
)

SELECT -- noqa: AM07
    measured.source,
    measured.property_id,
    measured.market,
    measured.product_type,
    measured.check_in,
    measured.nights,
    measured.party,
    measured.currency,
    measured.room_id,
    measured.board_id,
    measured.policy_key,
    measured.offer_key,
    CASE WHEN measured.is_beside THEN measured.middle.market ELSE measured.reference_market END AS compared_with,
    measured.reference_market,
    measured.markets_compared,
    measured.markets_apart,
    measured.total,
    CASE WHEN measured.is_beside THEN measured.middle.total ELSE measured.reference_converted END AS compared_total,
    CASE WHEN measured.is_beside THEN measured.middle.total ELSE measured.reference_total END AS compared_answered,
    CASE WHEN measured.is_beside THEN measured.currency ELSE measured.reference_currency END AS compared_currency,
    CASE WHEN measured.is_beside THEN 'same' ELSE measured.currency_basis END AS currency_basis,
    CASE
        WHEN
            len(measured.alike_markets) > 0
            AND abs(measured.from_middle_pct) < abs(measured.unexplained_pct)
            THEN measured.from_middle_pct
        ELSE measured.unexplained_pct
    END AS unexplained_pct,
    measured.alike_markets,
    measured.is_of_two,
    FALSE AS is_in_disagreement,
    measured.is_reference_alone
    AND NOT measured.is_beside
    AND NOT measured.is_shown_by_other
    AND together.observations IS NOT NULL AS is_unconfirmed,
    coalesce(sides.alike, []) AS split_markets,
    coalesce(sides.standing, []) AS standing_markets,
    measured.losing_snapshots,
    CASE WHEN NOT measured.is_beside THEN measured.rate END AS rate,
    CASE WHEN NOT measured.is_beside THEN measured.rate_date END AS rate_date,
    [measured.observation, measured.reference_observation]
    || CASE
        WHEN together.observations IS NOT NULL THEN together.observations
        WHEN measured.middle IS NULL THEN []
        ELSE [measured.middle.observation]
    END
    || CASE
        WHEN
            together.observations IS NOT NULL
            OR witness.offer_key IS NULL
            OR witness.market = measured.middle.market
            THEN []
        ELSE [
            mart.observation(
                'witness',
                witness.source,
                witness.property_id,
                witness.offer_key,
                witness.seen_sweep_id,
                witness.seen_search_id,
                witness.seen_offer_no
            )
        ]
    END
    || CASE WHEN measured.currency_basis = 'same' THEN coalesce(lent.witnesses, []) ELSE [] END AS evidence
FROM measured
LEFT JOIN state.offer_open AS witness
    ON
        witness.source = measured.source
        AND witness.property_id = measured.property_id
        AND witness.offer_key = measured.witness_key
LEFT JOIN together
    ON
        together.source = measured.source
        AND together.property_id = measured.property_id
        AND together.offer_key = measured.offer_key
LEFT JOIN sides
    ON
        sides.source = measured.source
        AND sides.property_id = measured.property_id
        AND sides.offer_key = measured.offer_key
LEFT JOIN lent
    ON
        lent.source = measured.source
        AND lent.property_id = measured.property_id
        AND lent.reference_offer_key = measured.reference_offer_key
        AND NOT measured.is_reference_apart
WHERE
    CASE
        WHEN measured.is_beside
            THEN
                measured.middle.market <> measured.market
                AND abs(measured.from_middle_pct) > measured.alike_pct
        ELSE measured.currency_basis = 'same' OR measured.is_beyond
    END

UNION ALL BY NAME

-- The deviating price is the reference market's, as answered.
SELECT
    reference.* EXCLUDE (middle_market), -- noqa: RF02
    reference.middle_market.market AS compared_with,
    reference.middle_market.total AS compared_answered,
    reference.middle_market.currency AS compared_currency,
    reference.middle_market.currency_basis,
    1 / reference.middle_market.rate AS rate,
    reference.middle_market.rate_date,
    -100 * reference.middle_market.unexplained_pct / (100 + reference.middle_market.unexplained_pct)
        AS unexplained_pct,
    CASE
        WHEN reference.middle_market.rate IS NULL THEN reference.middle_market.total
        ELSE
            mart.converted(
                reference.middle_market.total,
                reference.middle_market.from_rate,
                reference.middle_market.to_rate,
                unit.minor_unit
            )
    END AS compared_total,
    NULL AS losing_snapshots
FROM (
    SELECT
        stood.source,
        stood.property_id,
        any_value(stood.reference_market) AS market,
        any_value(stood.product_type) AS product_type,
        any_value(stood.check_in) AS check_in,
        any_value(stood.nights) AS nights,
        any_value(stood.party) AS party,
        any_value(stood.reference_currency) AS currency,
        any_value(stood.reference_total) AS total,
        any_value(stood.room_id) AS room_id,
        any_value(stood.board_id) AS board_id,
        any_value(stood.policy_key) AS policy_key,
        stood.reference_offer_key AS offer_key,
        any_value(stood.reference_market) AS reference_market,
        any_value(stood.markets_compared) AS markets_compared,
        any_value(stood.markets_apart) AS markets_apart,
        [] AS alike_markets,
        FALSE AS is_of_two,
        any_value(stood.markets_compared) > 1
        AND 2 * any_value(stood.markets_agreed) <= any_value(stood.markets_compared) AS is_in_disagreement,
        FALSE AS is_unconfirmed,
        coalesce(any_value(defended.against), []) AS split_markets,
        coalesce(any_value(defended.standing), []) AS standing_markets,
        arg_min(
            {
                'market': stood.market,
                'total': stood.total,
                'currency': stood.currency,
                'currency_basis': stood.currency_basis,
                'rate': stood.rate,
                'to_rate': stood.to_rate,
                'from_rate': stood.from_rate,
                'rate_date': stood.rate_date,
                'unexplained_pct': stood.unexplained_pct
            },
            (stood.from_level, stood.market, stood.currency)
        ) AS middle_market,
        list(stood.observation ORDER BY stood.market, stood.currency)
        || coalesce(any_value(stood.leaning_witnesses), [])
        -- Of one market and the reference market, only converted prices show which deviates.
        || CASE
            WHEN any_value(stood.markets_compared) = 1 THEN coalesce(any_value(stood.alike_witnesses), [])
            ELSE []
        END
        || [any_value(stood.reference_observation)]
        || coalesce(any_value(defended.witnesses), [])
        || coalesce(any_value(lent.witnesses), []) AS evidence
    FROM stood
    LEFT JOIN defended
        ON
            defended.source = stood.source
            AND defended.property_id = stood.property_id
            AND defended.reference_offer_key = stood.reference_offer_key
    LEFT JOIN lent
        ON
            lent.source = stood.source
            AND lent.property_id = stood.property_id
            AND lent.reference_offer_key = stood.reference_offer_key
    WHERE
        stood.is_best
        AND stood.is_reference_apart
        AND stood.is_of_most
    GROUP BY stood.source, stood.property_id, stood.reference_offer_key
    -- What rates of the month explain of all of them is a mark-up.
    HAVING bool_or(stood.is_beyond)
) AS reference
LEFT JOIN ref.currency AS unit ON unit.currency = reference.currency
