-- One row per disparity found tonight that is not reported, because it is unknown which price deviates.
-- Two prices alone do not show which deviates. If no third market agrees with one of them tonight, an open finding
-- about the other one stands; for a finding about the reference market, two others must agree with each other, and not
-- both be what open findings are about: that these two agree was known when they were found to deviate. A new finding
-- waits for a market that is silent tonight, or that has sold the offer until silent_nights ago: unless only the price
-- that it is about has changed since, or an open finding shows that it deviated in the other direction.
WITH begun AS (
    SELECT found.*
    FROM night.disparity_found AS found
    WHERE found.is_new
),

near AS MATERIALIZED (
    SELECT
        offer.source,
        offer.property_id,
        offer.offer_key,
        offer.market,
        offer.product_type,
        offer.check_in,
        offer.nights,
        offer.party,
        offer.room_id,
        offer.board_id,
        offer.policy_key,
        offer.currency,
        offer.is_offered,
        offer.valid_from
    FROM state.offer_open AS offer
    SEMI JOIN begun ON begun.property_id = offer.property_id
),

-- Where a third market has sold the offer until lately, and may be back, and what has changed since does not show which
-- price moved.
was_third AS (
    SELECT begun.subject_key
    FROM begun
    INNER JOIN near AS own
        ON
            own.source = begun.source
            AND own.property_id = begun.property_id
            AND own.offer_key = begun.offer_key
    INNER JOIN near AS other
        ON
            other.source = begun.source
            AND other.property_id = begun.property_id
            AND other.offer_key = begun.compared_key
    INNER JOIN near AS third
        ON
            third.source = own.source
            AND third.property_id = own.property_id
            AND third.product_type = own.product_type
            AND third.check_in = own.check_in
            AND third.nights = own.nights
            AND third.party = own.party
            AND third.room_id IS NOT DISTINCT FROM own.room_id
            AND third.board_id IS NOT DISTINCT FROM own.board_id
            AND third.policy_key = own.policy_key
            AND third.currency IS NOT DISTINCT FROM other.currency
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE
        third.market <> own.market
        AND third.market <> other.market
        AND NOT third.is_offered
    GROUP BY begun.subject_key, own.valid_from, other.valid_from
    HAVING
        max(third.valid_from)
        >= any_value(sweep.started_at) - to_hours(24 * any_value(analysis.silent_nights) + 12)
        AND NOT (
            own.valid_from >= max(third.valid_from)
            AND (other.valid_from < max(third.valid_from) OR bool_or(begun.has_turned))
        )
),

contrary AS (
    SELECT DISTINCT each.subject_key
    FROM (
        SELECT
            compared.subject_key,
            compared.source,
            compared.side,
            unnest(compared.others) AS other_key
        FROM night.disparity_found AS compared
    ) AS each
    INNER JOIN state.flag_open AS before
        ON
            before.rule = 'market_disparity'
            AND before.subject_key
            = mart.subject_key('market_disparity', concat_ws('|', each.source, each.other_key))
            AND sign(before.size_pct) <> each.side
),

-- Those that an open finding about the other offer contradicts, or that are new while a third market is missing.
doubted AS (
    SELECT DISTINCT compared.*
    FROM night.disparity_found AS compared
    LEFT JOIN begun ON begun.subject_key = compared.subject_key
    LEFT JOIN was_third ON was_third.subject_key = compared.subject_key
    LEFT JOIN contrary ON contrary.subject_key = compared.subject_key
    LEFT JOIN night.market_silent AS silent
        ON
            silent.market <> compared.market
            AND silent.operation = CASE compared.source WHEN 'multi' THEN 'multi' ELSE 'single' END
    WHERE
        contrary.subject_key IS NOT NULL
        OR was_third.subject_key IS NOT NULL
        OR (silent.market IS NOT NULL AND begun.subject_key IS NOT NULL)
),

-- Tonight's prices of the same offer in all markets, beside the reference market's price in the finding's own source:
-- in the other source, that one may differ.
seen AS (
    SELECT
        doubted.subject_key,
        doubted.is_of_reference,
        doubted.beside_key,
        doubted.market AS found_market,
        parity.offer_key,
        parity.market,
        parity.currency,
        parity.currency_basis,
        parity.total,
        any_value(parity.reference_total) FILTER (WHERE parity.source = doubted.source) OVER of_finding
            AS found_reference,
        CASE
            WHEN parity.source = doubted.source THEN parity.gap_pct
            ELSE
                (100 + parity.gap_pct) * parity.reference_total::DOUBLE / found_reference::DOUBLE
                - 100
        END AS apart_pct,
        CASE
            WHEN parity.source = doubted.source
                THEN mart.is_level(parity.verdict, parity.gap_pct, analysis.disparity_pct)
            ELSE abs(apart_pct) <= analysis.disparity_pct + analysis.tolerance_pct
        END AS is_met,
        sign(apart_pct) = -doubted.side AS is_opposite,
        before.flag_id IS NOT NULL AS is_accused
    FROM doubted
    INNER JOIN mart.market_parity AS parity
        ON
            list_contains(doubted.sources, parity.source)
            AND parity.property_id = doubted.property_id
            AND parity.reference_offer_key = doubted.reference_key
    LEFT JOIN state.flag_open AS before
        ON
            before.rule = 'market_disparity'
            AND before.subject_key
            = mart.subject_key('market_disparity', concat_ws('|', doubted.source, parity.offer_key))
            AND sign(before.size_pct) <> doubted.side
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE
        parity.match_grade = 'exact'
        AND parity.currency_basis <> 'supplier_rate'
        AND parity.seen_sweep_id = sweep.sweep_id
        AND parity.reference_sweep_id = sweep.sweep_id
    WINDOW
        of_finding AS (PARTITION BY doubted.subject_key)
)

SELECT doubted.subject_key
FROM doubted
ANTI JOIN (
    SELECT seen.subject_key
    FROM seen
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN seen AS beside
        ON
            beside.subject_key = seen.subject_key
            AND CASE
                WHEN seen.is_of_reference THEN beside.market < seen.market
                ELSE beside.offer_key = seen.beside_key
            END
    WHERE
        seen.market <> seen.found_market
        AND CASE
            WHEN seen.is_of_reference
                THEN
                    seen.is_opposite
                    AND beside.is_opposite
                    AND NOT seen.is_met
                    AND NOT beside.is_met
                    AND NOT (seen.is_accused AND beside.is_accused)
                    AND 100 * abs((100 + seen.apart_pct) / (100 + beside.apart_pct) - 1)
                    <= analysis.disparity_pct
                    + analysis.tolerance_pct
                    + CASE
                        WHEN seen.currency_basis = 'same' AND beside.currency_basis = 'same' THEN 0
                        ELSE analysis.reference_rate_pct
                    END
            WHEN seen.beside_key IS NULL THEN seen.currency_basis = 'same' AND seen.is_met
            ELSE
                seen.market <> beside.market
                AND seen.currency = beside.currency
                AND 100 * abs(seen.total::DOUBLE / beside.total::DOUBLE - 1)
                <= analysis.disparity_pct + analysis.tolerance_pct
        END
) AS decided ON decided.subject_key = doubted.subject_key
