-- One row per disparity that tonight's findings do not confirm, and pair of tonight's prices that it rests on.
-- side_found: 1 if the price of the flag's market is still on the side on which it was found, -1 if it has crossed.
WITH pair AS MATERIALIZED (
    SELECT
        parity.source,
        parity.property_id,
        parity.offer_key,
        parity.market,
        parity.currency,
        parity.total,
        parity.reference_offer_key,
        parity.reference_market,
        parity.reference_currency,
        parity.reference_total,
        parity.currency_basis,
        sign(parity.gap) AS side,
        mart.is_level(parity.verdict, parity.gap_pct, analysis.disparity_pct) AS is_met
    FROM mart.market_parity AS parity
    SEMI JOIN night.flag_unconfirmed AS evidence
        ON
            evidence.rule = 'market_disparity'
            AND evidence.item.source = parity.source
            AND evidence.item.property_id = parity.property_id
            AND evidence.item.offer_key = parity.offer_key
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE
        parity.match_grade = 'exact'
        AND parity.currency_basis <> 'supplier_rate'
        AND parity.seen_sweep_id = sweep.sweep_id
        AND parity.reference_sweep_id = sweep.sweep_id
)

SELECT
    evidence.flag_id,
    evidence.market AS flag_market,
    evidence.size_pct,
    evidence.fx,
    evidence.last_flagged_at,
    evidence.compared_sweep_id,
    evidence.compared,
    pair.*,
    CASE evidence.market WHEN pair.market THEN pair.side WHEN pair.reference_market THEN -pair.side END
    * sign(evidence.size_pct) AS side_found
FROM night.flag_unconfirmed AS evidence
INNER JOIN pair
    ON
        pair.source = evidence.item.source
        AND pair.property_id = evidence.item.property_id
        AND pair.offer_key = evidence.item.offer_key
WHERE
    evidence.rule = 'market_disparity'
    -- Prices of the other source only show which deviates.
    AND pair.source = evidence.compared_source
