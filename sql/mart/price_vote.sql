-- One row per pair of mart.price_disagreement, and how the markets vote: which of all compared prices deviates.
-- markets_compared: Number of markets compared with the reference market in one currency; if none, in any currency.
-- markets_voting: Of these, all but those on the side that deviates that do not deviate, nor agree with either.
-- markets_agreed: Number of markets that deviate in the same direction and agree with each other.
-- markets_apart: Number of compared markets that deviate in the direction of this one, or are at their level.
-- witness_key: Offer key in another market that agrees with the reference market; NULL: there is none.
-- is_reference_alone: Whether no market agrees with the reference market, in its currency or another.
-- leaning_witnesses: Observations of markets that are only at the level of those that deviate.
-- alike_witnesses: Observations of converted prices at the level of those that deviate.
-- is_outvoted: Whether the markets of the same source outvote the reference market.
-- is_shown_by_other: Whether the prices of the other source decide which one deviates, or that it is unknown.
-- is_reference_apart: Whether the reference market is the one that deviates.
-- is_of_most: Whether the market is on the side of more than half of those that count.
-- are_halves: Whether markets that agree with each other oppose as many that agree with the reference market.
-- is_awaiting: Whether a third market may still decide between the only two prices.
-- Two markets or more outvote the reference market if they agree and are more than half of all that have a price,
-- itself included. One on their side that only rates bring to its price, and that is closer to theirs, does not count.
-- Converted prices never outvote markets that agree in one currency. If only one market shares the reference market's
-- currency, they decide which of the two deviates.
-- Where lists and details of one sweep disagree on whether the reference market deviates, those with more markets
-- decide, provided that its own price is level in both. If one of them has only two prices, the other decides by the
-- prices that are level with one of the two; a market's own price there does not count.
WITH agreeing AS (
    SELECT
        disagreement.*,
        disagreement.is_standing
        AND (
            disagreement.currency_basis = 'same'
            -- One that is closer to the level of those that deviate agrees with neither.
            OR coalesce(100 * disagreement.from_level > abs(disagreement.gap_pct), TRUE)
        ) AS is_agreeing
    FROM mart.price_disagreement AS disagreement
),

pair AS MATERIALIZED (
    SELECT
        agreeing.*,
        -- In each of its currencies, the market neither deviates nor agrees with the reference market.
        bool_and(agreeing.is_best AND NOT (agreeing.is_leaning OR agreeing.is_agreeing)) OVER of_market
        AND min(sign(agreeing.gap)) OVER of_market = max(sign(agreeing.gap)) OVER of_market AS is_in_doubt
    FROM agreeing
    WINDOW
        of_market AS (
            PARTITION BY agreeing.source, agreeing.property_id, agreeing.reference_offer_key, agreeing.market
        )
),

-- How the markets compare with each offer of the reference market; only for offers with which one does not agree.
voted AS (
    SELECT
        pair.source,
        pair.property_id,
        pair.reference_offer_key,
        pair.reference_sweep_id,
        any_value(pair.reference_total) AS reference_total,
        any_value(pair.alike_pct) AS alike_pct,
        count(DISTINCT pair.market) FILTER (WHERE pair.is_best) AS markets_compared,
        count(DISTINCT pair.market) FILTER (WHERE pair.is_leaning AND pair.gap > 0) AS markets_dearer,
        count(DISTINCT pair.market) FILTER (WHERE pair.is_leaning AND pair.gap < 0) AS markets_cheaper,
        count(DISTINCT pair.market) FILTER (WHERE pair.is_in_doubt AND pair.gap > 0) AS in_doubt_dearer,
        count(DISTINCT pair.market) FILTER (WHERE pair.is_in_doubt AND pair.gap < 0) AS in_doubt_cheaper,
        -- If another market meets the reference market, only markets that agree with each other can outvote the two.
        greatest(
            count(DISTINCT pair.market) FILTER (
                WHERE pair.is_leaning AND pair.gap > 0 AND pair.from_level <= pair.agreed_pct / 100
            ),
            count(DISTINCT pair.market) FILTER (
                WHERE pair.is_leaning AND pair.gap < 0 AND pair.from_level <= pair.agreed_pct / 100
            )
        ) AS markets_agreed,
        -- Where one market shares the reference market's currency, converted prices decide between the two.
        count(DISTINCT pair.market) FILTER (WHERE pair.is_alike) AS markets_alike,
        count(DISTINCT pair.market) FILTER (WHERE NOT pair.is_best AND pair.is_agreeing) AS markets_standing,
        arg_min(pair.offer_key, pair.market) FILTER (WHERE pair.is_best AND pair.is_agreeing) AS witness_key,
        list(pair.as_witness ORDER BY pair.market, pair.currency) FILTER (
            WHERE pair.is_leaning AND NOT pair.is_apart
        ) AS leaning_witnesses,
        list(pair.as_witness ORDER BY pair.market, pair.currency) FILTER (WHERE pair.is_alike)
            AS alike_witnesses
    FROM pair
    GROUP BY pair.source, pair.property_id, pair.reference_offer_key, pair.reference_sweep_id
),

outvoted AS (
    SELECT
        voted.*,
        sign(voted.markets_dearer::BIGINT - voted.markets_cheaper::BIGINT) AS side,
        voted.markets_compared - CASE side
            WHEN 1 THEN voted.in_doubt_dearer
            WHEN -1 THEN voted.in_doubt_cheaper
            ELSE 0
        END AS markets_voting,
        -- The reference market's own price is one more vote: two against two accuse neither side.
        (voted.markets_agreed >= 2 AND 2 * voted.markets_agreed > markets_voting + 1)
        OR (
            voted.markets_compared >= 2
            AND greatest(voted.markets_dearer, voted.markets_cheaper) = voted.markets_compared
        )
        OR (
            voted.markets_compared = 1
            AND greatest(voted.markets_dearer, voted.markets_cheaper) = 1
            AND voted.markets_alike > voted.markets_standing
        ) AS is_outvoted,
        voted.markets_agreed >= 2
        AND 2 * voted.markets_agreed > markets_voting
        AND NOT is_outvoted AS are_halves
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
    INNER JOIN pair AS lone
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
    HAVING markets_beside <> reference_beside
),

stand AS (
    SELECT
        own.* EXCLUDE (are_halves),
        vouched.source IS NOT NULL AS is_vouched,
        coalesce(
            vouched.source IS NULL
            AND other.markets_compared > own.markets_compared
            AND 100 * abs(other.reference_total::DOUBLE / own.reference_total::DOUBLE - 1) <= own.alike_pct
            AND NOT (other.is_outvoted AND other.side <> own.side),
            FALSE
        ) AS is_decided_by_other,
        CASE
            WHEN is_vouched THEN vouched.markets_beside > vouched.reference_beside
            WHEN is_decided_by_other THEN other.is_outvoted
            ELSE own.is_outvoted
        END AS is_reference_apart,
        CASE
            WHEN is_vouched THEN FALSE
            WHEN is_decided_by_other THEN other.are_halves
            ELSE own.are_halves
        END AS are_halves
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
        cell.status = 'rejected' OR (mart.is_answered(cell.status) AND cell.is_whole) AS is_heard
    FROM state.cell AS cell
),

-- Of two prices without a third one: those for which another market's answer is still to come.
awaiting AS (
    SELECT DISTINCT
        pair.source,
        pair.property_id,
        pair.offer_key
    FROM pair
    INNER JOIN stand
        ON
            stand.source = pair.source
            AND stand.property_id = pair.property_id
            AND stand.reference_offer_key = pair.reference_offer_key
    INNER JOIN third
        ON
            third.source = pair.source
            AND third.property_id = pair.property_id
            AND third.market <> pair.market
            AND third.market <> pair.reference_market
            AND third.product_type = pair.product_type
            AND third.check_in = pair.check_in
            AND third.nights = pair.nights
            AND third.party = pair.party
    WHERE
        stand.markets_compared = 1
        AND stand.witness_key IS NULL
        AND (
            third.sweep_id > pair.seen_sweep_id
            OR (third.sweep_id = pair.seen_sweep_id AND NOT third.is_heard)
        )
)

SELECT
    pair.* EXCLUDE (is_agreeing, is_in_doubt),
    stand.markets_compared,
    stand.markets_voting,
    stand.markets_agreed,
    CASE WHEN pair.gap > 0 THEN stand.markets_dearer ELSE stand.markets_cheaper END AS markets_apart,
    stand.witness_key,
    stand.witness_key IS NULL AND stand.markets_standing = 0 AS is_reference_alone,
    stand.leaning_witnesses,
    stand.alike_witnesses,
    stand.is_outvoted,
    stand.is_vouched
    OR stand.is_reference_apart <> stand.is_outvoted
    OR (stand.is_decided_by_other AND stand.are_halves) AS is_shown_by_other,
    stand.is_reference_apart,
    2 * markets_apart > stand.markets_voting AS is_of_most,
    stand.are_halves,
    awaiting.offer_key IS NOT NULL AS is_awaiting
FROM pair
INNER JOIN stand
    ON
        stand.source = pair.source
        AND stand.property_id = pair.property_id
        AND stand.reference_offer_key = pair.reference_offer_key
LEFT JOIN awaiting
    ON
        awaiting.source = pair.source
        AND awaiting.property_id = pair.property_id
        AND awaiting.offer_key = pair.offer_key
