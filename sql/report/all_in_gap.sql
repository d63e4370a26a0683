-- One row per detail offer whose total equals the reference market's, but whose price with mandatory fees does not.
-- size_pct: Gap of the all-in prices, in percent of the reference market's; above 0: the market is dearer.
-- amount: Gap of the all-in prices, in currency.
SELECT
    'all_in_gap' AS rule,
    3 AS rule_version,
    mart.subject_key('all_in_gap', concat_ws('|', pair.source, pair.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(pair.all_in_gap_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    pair.all_in_gap_pct AS size_pct,
    pair.all_in_gap AS amount,
    pair.source,
    pair.property_id,
    pair.market,
    pair.product_type,
    pair.check_in,
    pair.nights,
    pair.party,
    pair.currency,
    pair.room_id,
    pair.board_id,
    pair.policy_key,
    pair.reference_market,
    pair.total,
    pair.reference_converted,
    pair.gap_pct,
    pair.fees_compared,
    pair.all_in,
    pair.reference_all_in,
    format(
        '{} pays {:.2f} {} with fees against {:.2f} in {}: {:+.1f}%; without fees the prices meet.',
        pair.market,
        pair.all_in::DOUBLE,
        pair.currency,
        pair.reference_all_in::DOUBLE,
        pair.reference_market,
        pair.all_in_gap_pct
    ) AS finding,
    [
        mart.observation(
            'market',
            pair.source,
            pair.property_id,
            pair.offer_key,
            pair.seen_sweep_id,
            pair.seen_search_id,
            pair.seen_offer_no
        ),
        mart.observation(
            'reference',
            pair.source,
            pair.property_id,
            pair.reference_offer_key,
            pair.reference_sweep_id,
            pair.reference_search_id,
            pair.reference_offer_no
        )
    ] AS evidence,
    mart.conversion(pair.reference_currency, pair.currency, pair.rate, pair.rate_date) AS fx
FROM mart.all_in_parity AS pair
CROSS JOIN ref.analysis AS analysis
WHERE
    pair.verdict = 'meet'
    AND pair.all_in_verdict <> 'meet'
    AND abs(pair.all_in_gap_pct)
    > mart.tolerance_of(pair.currency_basis, analysis.disparity_pct, analysis.reference_rate_pct)
    -- In the other currency that it was answered in, the same offer is the same finding.
    AND pair.currency_basis <> 'supplier_rate'
