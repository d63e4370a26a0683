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
-- evidence: Observations behind the deviation, with role; `witness`: another market; `other`: one that is no proof.
WITH pair AS MATERIALIZED (
    FROM mart.price_side
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
            found.source,
            found.property_id,
            found.reference_offer_key
        FROM pair AS found
        WHERE
            found.is_found
            AND found.is_shown_by_other
    ) AS borrowing
    INNER JOIN pair AS lender
        ON
            lender.property_id = borrowing.property_id
            AND lender.reference_offer_key = borrowing.reference_offer_key
            AND lender.source <> borrowing.source
    WHERE lender.is_best
    GROUP BY borrowing.source, borrowing.property_id, borrowing.reference_offer_key
),

-- Whether a rate or prices deviate, all markets together say: those in its currency, and those that outvote them. So do
-- they where none agrees with the reference market.
together AS (
    SELECT
        accused.source,
        accused.property_id,
        accused.offer_key,
        list(
            mart.observation(
                CASE
                    WHEN
                        len(accused.split_markets) > 0
                        OR (accused.is_reference_alone AND NOT accused.is_shown_by_other)
                        THEN 'other'
                    WHEN accused.currency_basis = 'reference_rate' AND pair.currency = accused.currency
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
    FROM pair AS accused
    INNER JOIN pair
        ON
            pair.source = accused.source
            AND pair.property_id = accused.property_id
            AND pair.reference_offer_key = accused.reference_offer_key
            AND pair.offer_key <> accused.offer_key
    WHERE
        accused.is_accused
        AND (
            accused.middle IS NOT NULL
            OR len(accused.split_markets) > 0
            OR (accused.is_reference_alone AND pair.market <> accused.market)
        )
        AND NOT accused.is_beside
    GROUP BY accused.source, accused.property_id, accused.offer_key
)

-- AM07 counts the columns of a star as one.
SELECT -- noqa: AM07
    accused.source,
    accused.property_id,
    accused.market,
    accused.product_type,
    accused.check_in,
    accused.nights,
    accused.party,
    accused.currency,
    accused.room_id,
    accused.board_id,
    accused.policy_key,
    accused.offer_key,
    CASE WHEN accused.is_beside THEN accused.middle.market ELSE accused.reference_market END AS compared_with,
    accused.reference_market,
    accused.markets_compared,
    accused.markets_apart,
    accused.total,
    CASE WHEN accused.is_beside THEN accused.middle.total ELSE accused.reference_converted END AS compared_total,
    CASE WHEN accused.is_beside THEN accused.middle.total ELSE accused.reference_total END AS compared_answered,
    CASE WHEN accused.is_beside THEN accused.currency ELSE accused.reference_currency END AS compared_currency,
    CASE WHEN accused.is_beside THEN 'same' ELSE accused.currency_basis END AS currency_basis,
    CASE
        WHEN accused.is_beside THEN accused.from_middle_pct
        WHEN
            len(accused.alike_markets) > 0
            AND abs(accused.from_middle_pct) < abs(accused.unexplained_pct)
            THEN accused.from_middle_pct
        ELSE accused.unexplained_pct
    END AS unexplained_pct,
    accused.alike_markets,
    accused.is_of_two,
    FALSE AS is_in_disagreement,
    accused.is_reference_alone
    AND NOT accused.is_beside
    AND NOT accused.is_shown_by_other
    AND together.observations IS NOT NULL AS is_unconfirmed,
    accused.split_markets,
    accused.standing_markets,
    accused.losing_snapshots,
    CASE WHEN NOT accused.is_beside THEN accused.rate END AS rate,
    CASE WHEN NOT accused.is_beside THEN accused.rate_date END AS rate_date,
    [accused.observation, accused.reference_observation]
    || CASE
        WHEN together.observations IS NOT NULL THEN together.observations
        WHEN accused.middle IS NULL THEN []
        ELSE [accused.middle.observation]
    END
    || CASE
        WHEN
            together.observations IS NOT NULL
            OR witness.offer_key IS NULL
            OR witness.market = accused.middle.market
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
    || CASE WHEN accused.currency_basis = 'same' THEN coalesce(lent.witnesses, []) ELSE [] END AS evidence
FROM pair AS accused
LEFT JOIN state.offer_open AS witness
    ON
        witness.source = accused.source
        AND witness.property_id = accused.property_id
        AND witness.offer_key = accused.witness_key
LEFT JOIN together
    ON
        together.source = accused.source
        AND together.property_id = accused.property_id
        AND together.offer_key = accused.offer_key
LEFT JOIN lent
    ON
        lent.source = accused.source
        AND lent.property_id = accused.property_id
        AND lent.reference_offer_key = accused.reference_offer_key
        AND NOT accused.is_reference_apart
WHERE
    accused.is_accused
    AND CASE
        WHEN accused.is_beside
            THEN
                accused.middle.market <> accused.market
                AND abs(accused.from_middle_pct) > accused.alike_pct
        ELSE accused.currency_basis = 'same' OR accused.is_beyond
    END

UNION ALL BY NAME

-- The deviating price is the reference market's, as answered.
SELECT
    reference.* EXCLUDE (closest),
    reference.closest.market AS compared_with,
    reference.closest.total AS compared_answered,
    reference.closest.currency AS compared_currency,
    reference.closest.currency_basis,
    1 / reference.closest.rate AS rate,
    reference.closest.rate_date,
    -100 * reference.closest.unexplained_pct / (100 + reference.closest.unexplained_pct)
        AS unexplained_pct,
    CASE
        WHEN reference.closest.rate IS NULL THEN reference.closest.total
        ELSE
            mart.converted(
                reference.closest.total,
                reference.closest.from_rate,
                reference.closest.to_rate,
                unit.minor_unit
            )
    END AS compared_total,
    NULL AS losing_snapshots
FROM (
    SELECT
        found.source,
        found.property_id,
        any_value(found.reference_market) AS market,
        any_value(found.product_type) AS product_type,
        any_value(found.check_in) AS check_in,
        any_value(found.nights) AS nights,
        any_value(found.party) AS party,
        any_value(found.reference_currency) AS currency,
        any_value(found.reference_total) AS total,
        any_value(found.room_id) AS room_id,
        any_value(found.board_id) AS board_id,
        any_value(found.policy_key) AS policy_key,
        found.reference_offer_key AS offer_key,
        any_value(found.reference_market) AS reference_market,
        any_value(found.markets_compared) AS markets_compared,
        any_value(found.markets_apart) AS markets_apart,
        [] AS alike_markets,
        FALSE AS is_of_two,
        2 * any_value(found.markets_agreed) <= any_value(found.markets_voting) AS is_in_disagreement,
        FALSE AS is_unconfirmed,
        any_value(found.split_markets) AS split_markets,
        any_value(found.standing_markets) AS standing_markets,
        arg_min(
            {
                'market': found.market,
                'total': found.total,
                'currency': found.currency,
                'currency_basis': found.currency_basis,
                'rate': found.rate,
                'to_rate': found.to_rate,
                'from_rate': found.from_rate,
                'rate_date': found.rate_date,
                'unexplained_pct': found.unexplained_pct
            },
            (abs(100 + found.gap_pct - found.level_pct), found.market, found.currency)
        ) AS closest,
        list(found.observation ORDER BY found.market, found.currency)
        || coalesce(any_value(found.leaning_witnesses), [])
        -- Of one market and the reference market, only converted prices show which deviates.
        || CASE
            WHEN any_value(found.markets_compared) = 1 THEN coalesce(any_value(found.alike_witnesses), [])
            ELSE []
        END
        || [any_value(found.reference_observation)]
        || coalesce(any_value(found.split_witnesses), [])
        || coalesce(any_value(lent.witnesses), []) AS evidence
    FROM pair AS found
    LEFT JOIN lent
        ON
            lent.source = found.source
            AND lent.property_id = found.property_id
            AND lent.reference_offer_key = found.reference_offer_key
    WHERE
        found.is_found
        AND found.is_best
        AND found.is_reference_apart
        AND found.is_of_most
    GROUP BY found.source, found.property_id, found.reference_offer_key
    -- What rates of the month explain of all of them is a mark-up.
    HAVING bool_or(found.is_beyond)
) AS reference
LEFT JOIN ref.currency AS unit ON unit.currency = reference.currency
