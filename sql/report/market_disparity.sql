-- One row per source and offer whose price in one market deviates from its price in another.
-- size_pct: Gap in percent of compared_total; > 0: the market is dearer.
-- unexplained_pct: Part of size_pct that no reference rate of eight days, nor other markets in its currency, explain.
-- amount: Gap in currency: total - compared_total; > 0: the market is dearer.
-- market: Market whose price deviates.
-- compared_with: Market that it is compared with; if the reference market deviates, the median one of those that agree.
-- reference_market: Reference market, with which all were compared.
-- markets_compared: Number of markets compared with the reference market in one currency; if none, in any currency.
-- markets_apart: Number of compared markets that deviate in the same direction, or are at the level of those that do.
-- currency_basis: `same`: both answered in currency; `reference_rate`: one converted at the reference rate of the day.
-- total: Total in the market, as answered in currency.
-- compared_total: Total in the compared_with market, in currency; converted if it was answered in another currency.
-- compared_answered: The same total as answered, in compared_currency.
-- compared_currency: ISO 4217 code of the currency in which the compared_with market was answered.
-- losing_snapshots: Consecutive snapshots in which the market was dearer than the reference market; NULL: unknown.
-- evidence: Observations behind the finding, with their role; `compared`: in its currency; `witness`: another market.
-- severity: `low`, `medium` or `high`, by unexplained_pct.
-- Few prices deviate, so only offers compared with the same reference offer are examined further.
-- A moved rate is not a price: at the reference rate, only prices beyond all rates of 31 days deviate; a rate that the
-- supplier has ignored for weeks is a mark-up. If other markets were answered in the currency of such a market, eight
-- days are enough: it must also deviate from the middle one of them, and is compared with that one without conversion.
-- If that one is beyond all rates of 31 days too, either both are dearer or the supplier has a rate of its own: prices
-- of one property cannot tell which. The finding says so, and is only as severe as what neither explains.
-- Two markets or more outvote the reference market if they agree and are more than half of all that have a price,
-- itself included. If markets agree by halves, the finding names both sides.
-- Converted prices never outvote markets that agree in one currency. If as many of them say otherwise, the finding
-- names both sides too. If only one market shares the reference market's currency, they decide which of the two
-- deviates.
-- If no third price agrees with one of two, the finding says that it may be the other one that deviates.
-- Where lists and details of one sweep disagree on whether the reference market deviates, those with more markets
-- decide, provided that its own price is level in both. If one of them has only two prices, the other decides by the
-- prices that are level with one of the two; a market's own price there does not count.
WITH apart AS (
    SELECT DISTINCT
        parity.property_id,
        parity.reference_offer_key
    FROM mart.market_parity AS parity
    CROSS JOIN ref.analysis AS analysis
    WHERE
        parity.match_grade = 'exact'
        AND parity.currency_basis <> 'supplier_rate'
        AND NOT mart.is_level(parity.verdict, parity.gap_pct, analysis.disparity_pct)
),

pair AS (
    SELECT
        parity.*,
        moved.to_rate,
        moved.from_rate,
        analysis.tolerance_pct + analysis.reference_rate_pct
        -- One day's rate does not tell how far rates move.
        + CASE WHEN moved.month_since >= moved.rate_date THEN analysis.reference_rate_pct ELSE 0 END AS allowed_pct,
        CASE WHEN parity.currency_basis = 'same' THEN 0 ELSE allowed_pct END AS of_rate_pct,
        CASE
            WHEN moved.sweep_id IS NULL THEN parity.gap_pct
            ELSE
                100 * greatest(parity.total::DOUBLE - parity.reference_total::DOUBLE * moved.highest_rate, 0)
                / (parity.reference_total::DOUBLE * moved.highest_rate)
                + 100 * least(parity.total::DOUBLE - parity.reference_total::DOUBLE * moved.lowest_rate, 0)
                / (parity.reference_total::DOUBLE * moved.lowest_rate)
        END AS unexplained_pct,
        coalesce(
            NOT mart.fits_rates(
                parity.total,
                parity.reference_total,
                moved.lowest_month_rate,
                moved.highest_month_rate,
                allowed_pct
            ),
            TRUE
        ) AS is_beyond,
        min(parity.market) OVER in_currency < max(parity.market) OVER in_currency AS has_others,
        NOT mart.is_level(parity.verdict, parity.gap_pct, analysis.disparity_pct)
        AND CASE WHEN has_others THEN abs(unexplained_pct) > of_rate_pct ELSE is_beyond END AS is_apart, -- noqa: RF02
        -- A price that only a rate of the month explains neither deviates nor agrees.
        NOT is_apart -- noqa: RF02
        AND (
            parity.verdict = 'meet'
            OR abs(unexplained_pct) <= of_rate_pct + analysis.disparity_pct -- noqa: RF02
        ) AS is_standing,
        parity.currency_basis = 'same' OR NOT bool_or(parity.currency_basis = 'same') OVER (
            PARTITION BY parity.source, parity.property_id, parity.reference_offer_key
        ) AS is_best,
        analysis.medium_pct,
        analysis.high_pct,
        analysis.disparity_pct,
        analysis.tolerance_pct,
        analysis.disparity_pct
        + analysis.tolerance_pct
        + CASE WHEN parity.currency_basis = 'same' THEN 0 ELSE analysis.reference_rate_pct END AS agreed_pct,
        mart.observation(
            'market',
            parity.source,
            parity.property_id,
            parity.offer_key,
            parity.seen_sweep_id,
            parity.seen_search_id,
            parity.seen_offer_no
        ) AS observation,
        mart.observation(
            'reference',
            parity.source,
            parity.property_id,
            parity.reference_offer_key,
            parity.reference_sweep_id,
            parity.reference_search_id,
            parity.reference_offer_no
        ) AS reference_observation
    FROM mart.market_parity AS parity
    SEMI JOIN apart
        ON
            apart.property_id = parity.property_id
            AND apart.reference_offer_key = parity.reference_offer_key
    LEFT JOIN mart.cross_rate AS moved
        ON
            moved.sweep_id = parity.seen_sweep_id
            AND moved.to_currency = parity.currency
            AND moved.from_currency = parity.reference_currency
    CROSS JOIN ref.analysis AS analysis
    WHERE
        parity.match_grade = 'exact'
        AND parity.currency_basis <> 'supplier_rate'
    WINDOW
        in_currency AS (
            PARTITION BY parity.source, parity.property_id, parity.reference_offer_key, parity.currency
        )
),

-- What the deviating markets have in common: the lower median of their price for 100 in the reference market.
leaning AS (
    SELECT
        pair.source,
        pair.property_id,
        pair.reference_offer_key,
        quantile_disc(100 + pair.gap_pct, 0.5) FILTER (WHERE pair.gap > 0) AS dearer,
        quantile_disc(100 + pair.gap_pct, 0.5) FILTER (WHERE pair.gap < 0) AS cheaper
    FROM pair
    WHERE pair.is_best AND pair.is_apart
    GROUP BY pair.source, pair.property_id, pair.reference_offer_key
),

-- If no other market shares the reference market's currency, a market at the level of those that deviate counts with
-- them, though a rate may still explain its price: otherwise the first one to pass the bound would be blamed for what
-- the reference market does.
leaned AS (
    SELECT
        pair.*,
        CASE WHEN pair.gap > 0 THEN leaning.dearer ELSE leaning.cheaper END AS level,
        abs((100 + pair.gap_pct) / level - 1) AS from_level, -- noqa: RF02
        pair.is_best
        AND (
            pair.is_apart
            OR (
                pair.currency_basis <> 'same'
                AND coalesce(from_level <= (pair.disparity_pct + pair.tolerance_pct) / 100, FALSE) -- noqa: RF02
            )
        ) AS is_leaning,
        NOT pair.is_best
        AND pair.is_apart
        AND pair.is_beyond
        AND coalesce(from_level <= pair.agreed_pct / 100, FALSE) AS is_alike, -- noqa: RF02
        mart.observation(
            'witness',
            pair.source,
            pair.property_id,
            pair.offer_key,
            pair.seen_sweep_id,
            pair.seen_search_id,
            pair.seen_offer_no
        ) AS as_witness
    FROM pair
    LEFT JOIN leaning
        ON
            leaning.source = pair.source
            AND leaning.property_id = pair.property_id
            AND leaning.reference_offer_key = pair.reference_offer_key
),

-- How the markets compare with each offer of the reference market; only for offers with which one does not agree.
voted AS (
    SELECT
        leaned.source,
        leaned.property_id,
        leaned.reference_offer_key,
        leaned.reference_sweep_id,
        any_value(leaned.reference_total) AS reference_total,
        any_value(leaned.disparity_pct + leaned.tolerance_pct) AS alike_pct,
        any_value(leaned.level) FILTER (WHERE leaned.gap > 0) AS level_dearer,
        any_value(leaned.level) FILTER (WHERE leaned.gap < 0) AS level_cheaper,
        count(DISTINCT leaned.market) FILTER (WHERE leaned.is_best) AS markets_compared,
        count(DISTINCT leaned.market) FILTER (WHERE leaned.is_leaning AND leaned.gap > 0) AS markets_dearer,
        count(DISTINCT leaned.market) FILTER (WHERE leaned.is_leaning AND leaned.gap < 0) AS markets_cheaper,
        -- If another market meets the reference market, only markets that agree with each other can outvote the two.
        greatest(
            count(DISTINCT leaned.market) FILTER (
                WHERE leaned.is_leaning AND leaned.gap > 0 AND leaned.from_level <= leaned.agreed_pct / 100
            ),
            count(DISTINCT leaned.market) FILTER (
                WHERE leaned.is_leaning AND leaned.gap < 0 AND leaned.from_level <= leaned.agreed_pct / 100
            )
        ) AS markets_agreed,
        -- Where one market shares the reference market's currency, converted prices decide between the two.
        count(DISTINCT leaned.market) FILTER (WHERE leaned.is_alike) AS markets_alike,
        -- One that is closer to the level of those that deviate agrees with neither.
        count(DISTINCT leaned.market) FILTER (
            WHERE
            NOT leaned.is_best
            AND leaned.is_standing
            AND coalesce(100 * leaned.from_level > abs(leaned.gap_pct), TRUE)
        ) AS markets_standing,
        arg_min(leaned.offer_key, leaned.market) FILTER (WHERE leaned.is_best AND NOT leaned.is_apart)
            AS witness_key,
        list(leaned.as_witness ORDER BY leaned.market, leaned.currency) FILTER (
            WHERE leaned.is_leaning AND NOT leaned.is_apart
        ) AS leaning_witnesses,
        list(leaned.as_witness ORDER BY leaned.market, leaned.currency) FILTER (WHERE leaned.is_alike)
            AS alike_witnesses
    FROM leaned
    GROUP BY leaned.source, leaned.property_id, leaned.reference_offer_key, leaned.reference_sweep_id
),

outvoted AS (
    SELECT
        voted.*,
        sign(voted.markets_dearer::BIGINT - voted.markets_cheaper::BIGINT) AS side,
        -- The reference market's own price is one more vote: two against two accuse neither side.
        (voted.markets_agreed >= 2 AND 2 * voted.markets_agreed > voted.markets_compared + 1)
        OR (
            voted.markets_compared >= 2
            AND greatest(voted.markets_dearer, voted.markets_cheaper) = voted.markets_compared
        )
        OR (
            voted.markets_compared = 1
            AND greatest(voted.markets_dearer, voted.markets_cheaper) = 1
            AND voted.markets_alike > voted.markets_standing
        ) AS is_outvoted
    FROM voted
),

-- Of two prices without a third one in their source: how many markets of the other source are level with each.
vouched AS (
    SELECT
        lone.source,
        lone.property_id,
        lone.reference_offer_key,
        count(DISTINCT voice.market) FILTER (
            WHERE
            voice.market <> lone.market
            AND 100 * abs(voice.total::DOUBLE / lone.total::DOUBLE - 1) <= lone.agreed_pct
            AND abs(voice.total - lone.total) < abs(voice.total - lone.reference_total)
        ) AS markets_beside,
        count(DISTINCT voice.market) FILTER (
            WHERE
            voice.market <> lone.reference_market
            AND 100 * abs(voice.total::DOUBLE / lone.reference_total::DOUBLE - 1) <= lone.agreed_pct
            AND abs(voice.total - lone.reference_total) < abs(voice.total - lone.total)
        ) AS reference_beside
    FROM voted
    INNER JOIN leaned AS lone
        ON
            lone.source = voted.source
            AND lone.property_id = voted.property_id
            AND lone.reference_offer_key = voted.reference_offer_key
    INNER JOIN (
        SELECT
            pair.source,
            pair.property_id,
            pair.reference_offer_key,
            pair.reference_sweep_id,
            pair.market,
            pair.total
        FROM pair
        WHERE pair.currency_basis = 'same'

        UNION ALL

        SELECT
            pair.source,
            pair.property_id,
            pair.reference_offer_key,
            pair.reference_sweep_id,
            pair.reference_market AS market,
            pair.reference_total AS total
        FROM pair
        WHERE pair.currency_basis = 'same'
    ) AS voice
        ON
            voice.property_id = lone.property_id
            AND voice.reference_offer_key = lone.reference_offer_key
            AND voice.reference_sweep_id = lone.reference_sweep_id
            AND voice.source <> lone.source
    WHERE
        voted.markets_compared = 1
        AND lone.is_apart
        AND lone.currency_basis = 'same'
    GROUP BY lone.source, lone.property_id, lone.reference_offer_key
    HAVING markets_beside <> reference_beside -- noqa: RF02
),

stand AS (
    SELECT
        own.*,
        vouched.source IS NOT NULL AS is_vouched,
        CASE
            WHEN is_vouched THEN vouched.markets_beside > vouched.reference_beside -- noqa: RF02
            WHEN
                other.markets_compared > own.markets_compared
                AND 100 * abs(other.reference_total::DOUBLE / own.reference_total::DOUBLE - 1) <= own.alike_pct
                AND NOT (other.is_outvoted AND other.side <> own.side)
                THEN other.is_outvoted
            ELSE own.is_outvoted
        END AS is_reference_apart
    FROM outvoted AS own
    LEFT JOIN outvoted AS other
        ON
            other.property_id = own.property_id
            AND other.reference_offer_key = own.reference_offer_key
            AND other.reference_sweep_id = own.reference_sweep_id
            AND other.source <> own.source
    LEFT JOIN vouched
        ON
            vouched.source = own.source
            AND vouched.property_id = own.property_id
            AND vouched.reference_offer_key = own.reference_offer_key
),

-- Cells by the last sweep that requested them, and whether all was heard that the supplier says about the market.
third AS (
    SELECT
        CASE cell.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
        cell.property_id,
        cell.market,
        cell.product_type,
        cell.check_in,
        cell.nights,
        cell.party,
        cell.sweep_id,
        -- A market that the supplier refuses stays refused: nothing is left to hear.
        cell.status = 'rejected' OR (cell.status IN ('offered', 'no_offer', 'absent') AND cell.is_whole) AS is_heard
    FROM state.cell AS cell
),

stood AS (
    SELECT
        pair.*,
        stand.markets_compared,
        stand.witness_key,
        stand.leaning_witnesses,
        stand.alike_witnesses,
        stand.markets_agreed,
        CASE WHEN pair.gap > 0 THEN stand.markets_dearer ELSE stand.markets_cheaper END AS markets_apart,
        stand.is_outvoted,
        stand.is_vouched OR stand.is_reference_apart <> stand.is_outvoted AS is_shown_by_other,
        stand.is_reference_apart,
        abs(100 + pair.gap_pct - CASE WHEN pair.gap > 0 THEN stand.level_dearer ELSE stand.level_cheaper END)
            AS from_level,
        2 * markets_apart > stand.markets_compared AS is_of_most, -- noqa: RF02
        stand.markets_agreed >= 2
        AND 2 * stand.markets_agreed > stand.markets_compared
        AND NOT stand.is_outvoted
        AND NOT is_shown_by_other AS are_halves -- noqa: RF02
    FROM pair
    INNER JOIN stand
        ON
            stand.source = pair.source
            AND stand.property_id = pair.property_id
            AND stand.reference_offer_key = pair.reference_offer_key
    ANTI JOIN third
        ON
            stand.markets_compared = 1
            AND stand.witness_key IS NULL
            AND third.source = pair.source
            AND third.property_id = pair.property_id
            AND third.market <> pair.market
            AND third.market <> pair.reference_market
            AND third.product_type = pair.product_type
            AND third.check_in = pair.check_in
            AND third.nights = pair.nights
            AND third.party = pair.party
            AND (
                third.sweep_id > pair.seen_sweep_id
                OR (third.sweep_id = pair.seen_sweep_id AND NOT third.is_heard)
            )
    WHERE pair.is_apart
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
    INNER JOIN leaned AS lender
        ON
            lender.property_id = borrowing.property_id
            AND lender.reference_offer_key = borrowing.reference_offer_key
            AND lender.reference_sweep_id = borrowing.reference_sweep_id
            AND lender.source <> borrowing.source
    WHERE lender.is_best
    GROUP BY borrowing.source, borrowing.property_id, borrowing.reference_offer_key
),

-- Of markets in one currency whose prices are converted, the middle one; of two, the closer to the reference.
middle AS (
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
            (abs(2 * placed.place - placed.places - 1), abs(placed.gap), placed.market)
        ) AS offer,
        min(sign(placed.gap)) = max(sign(placed.gap)) AND bool_and(placed.is_apart AND placed.is_beyond)
            AS are_all_beyond,
        list(DISTINCT placed.market ORDER BY placed.market) AS markets,
        count(DISTINCT placed.market) = 2 AS is_of_two
    FROM (
        SELECT
            pair.*,
            row_number() OVER (in_currency ORDER BY pair.gap, pair.market) AS place,
            count(*) OVER in_currency AS places
        FROM pair
        WHERE pair.currency_basis = 'reference_rate'
        WINDOW
            in_currency AS (PARTITION BY pair.source, pair.property_id, pair.reference_offer_key, pair.currency)
    ) AS placed
    GROUP BY placed.source, placed.property_id, placed.reference_offer_key, placed.currency
    HAVING count(DISTINCT placed.market) > 1
),

-- What each is compared with: the middle one of its currency; else the reference market, at the reference rate.
measured AS (
    SELECT
        stood.*,
        middle.offer AS middle,
        middle.offer IS NOT NULL AND NOT middle.offer.is_beyond AS is_beside,
        coalesce(is_beside AND middle.is_of_two, FALSE) AS is_of_two, -- noqa: RF02
        100 * (stood.total - middle.offer.total)::DOUBLE / middle.offer.total::DOUBLE AS from_middle_pct,
        -- A rate concerns all markets in its currency: where one of them meets the reference market, the rate is right.
        CASE WHEN middle.are_all_beyond THEN middle.markets ELSE [] END AS alike_markets
    FROM stood
    LEFT JOIN middle
        ON
            middle.source = stood.source
            AND middle.property_id = stood.property_id
            AND middle.reference_offer_key = stood.reference_offer_key
            AND middle.currency = stood.currency
            AND stood.currency_basis = 'reference_rate'
            -- A market that deviates in the other direction is not a valid reference.
            AND NOT (middle.offer.is_apart AND sign(middle.offer.gap) <> sign(stood.gap))
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
                pair.source = measured.source
                AND pair.property_id = measured.property_id
                AND pair.reference_offer_key = measured.reference_offer_key
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

-- Whether a rate or prices deviate, all markets together say: those in its currency, and those that outvote them.
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
        (measured.middle IS NOT NULL OR sides.offer_key IS NOT NULL)
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
    INNER JOIN leaned AS side
        ON
            side.source = accused.source
            AND side.property_id = accused.property_id
            AND side.reference_offer_key = accused.reference_offer_key
    GROUP BY accused.source, accused.property_id, accused.reference_offer_key
    HAVING len(standing) >= len(against) -- noqa: RF02
),

found AS (
    SELECT
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
        coalesce(sides.alike, []) AS split_markets,
        coalesce(sides.standing, []) AS standing_markets,
        measured.losing_snapshots,
        CASE WHEN NOT measured.is_beside THEN measured.rate END AS rate,
        CASE WHEN NOT measured.is_beside THEN measured.rate_date END AS rate_date,
        measured.medium_pct,
        measured.high_pct,
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
                    AND abs(measured.from_middle_pct) > measured.disparity_pct + measured.tolerance_pct
            ELSE measured.middle IS NULL OR measured.is_beyond
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
            any_value(stood.medium_pct) AS medium_pct,
            any_value(stood.high_pct) AS high_pct,
            [] AS alike_markets,
            FALSE AS is_of_two,
            any_value(stood.markets_compared) > 1 AND any_value(stood.markets_agreed) < 2 AS is_in_disagreement,
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
)

SELECT
    'market_disparity' AS rule,
    18 AS rule_version,
    mart.subject_key('market_disparity', concat_ws('|', found.source, found.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    100 * (found.total - found.compared_total)::DOUBLE / found.compared_total::DOUBLE AS size_pct,
    -- No rate alone makes a finding severe.
    CASE
        WHEN found.currency_basis = 'same' THEN size_pct -- noqa: RF02
        ELSE found.unexplained_pct
    END AS unexplained_pct,
    mart.severity(unexplained_pct, found.medium_pct, found.high_pct) AS severity, -- noqa: RF02
    (found.total - found.compared_total)::DECIMAL(18, 4) AS amount,
    found.source,
    found.property_id,
    found.market,
    found.product_type,
    found.check_in,
    found.nights,
    found.party,
    found.currency,
    found.room_id,
    found.board_id,
    found.policy_key,
    found.compared_with,
    found.reference_market,
    found.markets_compared,
    found.markets_apart,
    found.total,
    found.compared_total,
    found.compared_answered,
    found.compared_currency,
    found.currency_basis,
    found.losing_snapshots,
    format(
        '{} pays {:,.2f} {} against {} in {}{}: {:+.1f}%{}.{}{}',
        found.market,
        found.total::DOUBLE,
        found.currency,
        CASE
            WHEN found.currency_basis = 'same' THEN format('{:,.2f}', found.compared_answered::DOUBLE)
            ELSE format('{:,.2f} {}', found.compared_answered::DOUBLE, found.compared_currency)
        END,
        found.compared_with,
        CASE
            WHEN found.currency_basis = 'same' THEN ''
            ELSE format(' ({:,.2f} {} at the reference rate)', found.compared_total::DOUBLE, found.currency)
        END,
        size_pct, -- noqa: RF02
        CASE
            WHEN
                found.currency_basis = 'same'
                OR len(found.alike_markets) > 0
                OR round(abs(size_pct) - abs(unexplained_pct), 1) < 0.5 -- noqa: RF02
                THEN ''
            ELSE format(', {:+.1f}% from the closest rate of the last eight days', unexplained_pct) -- noqa: RF02
        END,
        CASE
            WHEN len(found.alike_markets) = 0 THEN ''
            ELSE
                format(
                    ' All markets in {} deviate ({}): the cause is their prices, or the supplier''s exchange rate.',
                    found.currency,
                    array_to_string(found.alike_markets, ', ')
                )
        END,
        CASE
            WHEN found.is_of_two
                THEN
                    format(
                        ' Only these two were answered in {}: which of them deviates depends on the exchange rate.',
                        found.currency
                    )
            WHEN found.is_in_disagreement
                THEN ' The other markets do not agree with each other: one of them may deviate instead.'
            WHEN len(found.evidence) = 2 AND found.currency_basis = 'same'
                THEN format(' No third price in {} shows which of the two deviates.', found.currency)
            WHEN len(found.evidence) = 2 THEN ' No third price shows which of the two deviates.'
            WHEN len(found.split_markets) = 0 THEN ''
            ELSE
                format(
                    ' Prices in {} markets ({}) differ alike from those in {} ({}): which side deviates is unknown.',
                    len(found.split_markets),
                    array_to_string(found.split_markets, ', '),
                    len(found.standing_markets),
                    array_to_string(found.standing_markets, ', ')
                )
        END
    ) AS finding,
    found.evidence,
    mart.conversion(found.compared_currency, found.currency, found.rate, found.rate_date) AS fx
FROM found
