-- One row: the market that others are compared with.
-- reference_market: Market that others are compared with; NULL: none is set, and no sweep saw an offer.
-- is_set: True: by setting; false: the market that had the most offers when it was chosen, see state.reference_choice.
-- chosen_sweep_id: Sweep that chose it by its offers; NULL: it is set, or none is chosen.
SELECT
    coalesce(analysis.reference_market, chosen.market) AS reference_market,
    analysis.reference_market IS NOT NULL AS is_set,
    CASE WHEN analysis.reference_market IS NULL THEN chosen.chosen_sweep_id END AS chosen_sweep_id
FROM ref.analysis AS analysis
LEFT JOIN state.reference_choice AS chosen ON TRUE
