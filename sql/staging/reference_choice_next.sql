-- One row: the market with which others are compared after this sweep, if the settings name none.
-- Once chosen it is kept: with another reference, scores and episodes would start over. Only after reference_gone_days
-- (ref.analysis) without an offer, another market replaces it. A market is chosen by what this sweep has: the most
-- possible pairs in one currency, which need no reference rate; among equals the most offers, then the first by name.
-- With each other market that was answered in one of its currencies, a market has as many possible pairs as the smaller
-- of the two has offers in that currency. By rule 1, under which earlier nights were published, pairs do not count.
-- A market requested in several currencies counts once, in the one with the most offers. A sweep that ended early
-- chooses none, as it may not have reached the market with the most.
WITH counted AS MATERIALIZED (
    SELECT
        offer.market,
        offer.currency_asked,
        offer.currency,
        count(*) AS offers
    FROM sweep_files.offer AS offer
    GROUP BY offer.market, offer.currency_asked, offer.currency
),

in_currency AS (
    SELECT
        counted.market,
        counted.currency_asked,
        sum(counted.offers) AS offers
    FROM counted
    GROUP BY counted.market, counted.currency_asked
),

most AS (
    SELECT
        in_currency.market,
        max(in_currency.offers) AS offers
    FROM in_currency
    GROUP BY in_currency.market
),

shared AS (
    SELECT
        here.market,
        there.market AS other_market,
        max(least(here.offers, there.offers)) AS pairs
    FROM counted AS here
    INNER JOIN counted AS there ON there.currency = here.currency AND there.market <> here.market
    GROUP BY here.market, there.market
),

paired AS (
    SELECT
        shared.market,
        sum(shared.pairs) AS pairs
    FROM shared
    CROSS JOIN night.reference_rule AS rule
    WHERE rule.version > 1
    GROUP BY shared.market
),

first_choice AS (
    SELECT arg_min(most.market, (-coalesce(paired.pairs, 0), -most.offers, most.market)) AS market
    FROM most
    CROSS JOIN night.sweep AS sweep
    LEFT JOIN paired ON paired.market = most.market
    WHERE sweep.state <> 'closed'
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
