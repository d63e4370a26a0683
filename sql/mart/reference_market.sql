-- One row: the market with which others are compared.
-- reference_market: Market with which others are compared; NULL: not set, and no sweep has seen an offer.
-- is_set: TRUE: chosen by setting; FALSE: chosen by the offers of a sweep, see state.reference_choice.
-- chosen_sweep_id: Sweep whose offers decided the choice; NULL: chosen by setting, or none chosen.
SELECT
    coalesce(analysis.reference_market, chosen.market) AS reference_market,
    analysis.reference_market IS NOT NULL AS is_set,
    CASE WHEN analysis.reference_market IS NULL THEN chosen.chosen_sweep_id END AS chosen_sweep_id
FROM ref.analysis AS analysis
LEFT JOIN state.reference_choice AS chosen ON TRUE
