-- One row per source and offer key of the sweep whose market was compared with the reference market in one currency.
-- Pairs of two currencies are left out: a rate moves each day, and an episode would begin and end with it. So are
-- detail answers that could not all be read: see mart.comparable_offer.
WITH chosen AS (
    SELECT coalesce(analysis.reference_market, most.market) AS market
    FROM ref.analysis AS analysis
    LEFT JOIN (
        SELECT offer.market
        FROM night.offer_observed AS offer
        GROUP BY offer.market
        ORDER BY count(*) DESC, offer.market ASC
        LIMIT 1
    ) AS most ON TRUE
),

priced AS (
    SELECT
        offer.*,
        hash(
            offer.source,
            offer.product_type,
            offer.check_in,
            offer.nights,
            offer.party,
            offer.currency_asked,
            offer.currency,
            coalesce(offer.room_stay_id, 0),
            offer.room_id,
            offer.board_id,
            offer.policy_key
        ) AS match_key
    FROM night.offer_observed AS offer
    WHERE
        offer.total > 0
        AND offer.currency IS NOT NULL
        AND offer.room_id IS NOT NULL
        AND offer.board_id IS NOT NULL
        AND (offer.is_whole OR offer.source = 'multi')
)

SELECT
    offer.source,
    offer.offer_key,
    offer.property_id,
    offer.market,
    offer.check_in,
    reference.market AS reference_market,
    reference.offer_key AS reference_offer_key,
    100 * (offer.total - reference.total)::DOUBLE / reference.total::DOUBLE AS gap_pct,
    offer.total - reference.total
    > mart.tolerance(reference.total, analysis.tolerance_pct, unit.minor_unit) AS is_losing
FROM priced AS offer
INNER JOIN priced AS reference
    ON
        reference.match_key = offer.match_key
        AND reference.property_id = offer.property_id
INNER JOIN chosen ON chosen.market = reference.market
CROSS JOIN ref.analysis AS analysis
LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
WHERE offer.market <> reference.market
