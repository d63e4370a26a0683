-- One row: the market that others are compared with.
-- reference_market: Market that others are compared with; NULL: none is set, and the latest sweep saw no offer.
-- is_set: True: by setting; false: the market with the most offers in the latest sweep, the first by name among equals.
SELECT
    coalesce(analysis.reference_market, most.market) AS reference_market,
    analysis.reference_market IS NOT NULL AS is_set
FROM ref.analysis AS analysis
LEFT JOIN (
    SELECT offer.market
    FROM state.offer_open AS offer
    WHERE
        offer.is_offered
        AND offer.seen_sweep_id = (SELECT max_by(sweep.sweep_id, sweep.started_at) FROM mart.sweep AS sweep)
    GROUP BY offer.market
    ORDER BY count(*) DESC, offer.market ASC
    LIMIT 1
) AS most ON TRUE
