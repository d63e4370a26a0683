-- One row: the market with which others are compared after this sweep, if the settings name none.
-- Once chosen it is kept: with another reference, scores and episodes would start over. Only after reference_gone_days
-- (ref.analysis) without an offer, it is replaced by the market with the most offers of this sweep, the first by name
-- among equals. A market requested in several currencies counts once, in the one with the most offers. A sweep that
-- ended early chooses none, as it may not have reached the market with the most.
WITH in_currency AS (
    SELECT
        offer.market,
        offer.currency_asked,
        count(*) AS offers
    FROM sweep_files.offer AS offer
    GROUP BY offer.market, offer.currency_asked
),

most AS (
    SELECT
        in_currency.market,
        max(in_currency.offers) AS offers
    FROM in_currency
    GROUP BY in_currency.market
),

first_choice AS (
    SELECT most.market
    FROM most
    CROSS JOIN night.sweep AS sweep
    WHERE sweep.state <> 'closed'
    ORDER BY most.offers DESC, most.market ASC
    LIMIT 1
),

held AS (
    SELECT
        before.market,
        before.chosen_sweep_id,
        CASE WHEN most.market IS NULL THEN before.last_offered_at ELSE sweep.started_at END AS last_offered_at,
        most.market IS NOT NULL
        OR before.last_offered_at > sweep.started_at - to_days(analysis.reference_gone_days)
        OR first_choice.market IS NULL AS is_kept
    FROM state.reference_choice AS before
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN most ON most.market = before.market
    LEFT JOIN first_choice ON TRUE
    WHERE before.market IS NOT NULL
)

SELECT
    CASE WHEN held.is_kept THEN held.market ELSE first_choice.market END AS market,
    CASE WHEN held.is_kept THEN held.chosen_sweep_id ELSE sweep.sweep_id END AS chosen_sweep_id,
    CASE
        WHEN held.is_kept THEN held.last_offered_at
        WHEN first_choice.market IS NOT NULL THEN sweep.started_at
    END AS last_offered_at
FROM night.sweep AS sweep
LEFT JOIN held ON TRUE
LEFT JOIN first_choice ON TRUE
