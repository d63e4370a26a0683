-- One row per detail offer whose excluded charges are less than the sum of the named fees by more than rounding.
-- size_pct: amount in percent of total; always > 0.
-- amount: Named fees - excluded charges, in currency; always > 0.
WITH mismatch AS (
    SELECT
        offer.*,
        offer.mandatory_charges - offer.excluded_charges AS excess,
        100 * excess::DOUBLE / offer.total::DOUBLE AS size_pct
    FROM mart.all_in_price AS offer
    WHERE
        offer.fees_stated > 0
        AND offer.mandatory_charges - offer.excluded_charges > offer.charges_rounding
        AND offer.total > 0
)

SELECT
    'excluded_charges_mismatch' AS rule,
    2 AS rule_version,
    mart.subject_key(rule, concat_ws('|', mismatch.source, mismatch.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(mismatch.size_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    mismatch.size_pct,
    mismatch.excess::DECIMAL(18, 4) AS amount,
    mismatch.source,
    mismatch.property_id,
    mismatch.market,
    mismatch.product_type,
    mismatch.check_in,
    mismatch.nights,
    mismatch.party,
    mismatch.currency,
    format(
        'Excluded charges of {:,.2f} {} are less than the named fees that they include, {:,.2f}.',
        mismatch.excluded_charges,
        coalesce(mismatch.currency, '(no currency)'),
        mismatch.mandatory_charges
    ) AS finding,
    [
        mart.observation(
            'offer',
            mismatch.source,
            mismatch.property_id,
            mismatch.offer_key,
            mismatch.seen_sweep_id,
            mismatch.seen_search_id,
            mismatch.seen_offer_no
        )
    ] AS evidence,
    mart.conversion(NULL, NULL, NULL, NULL) AS fx,
    mismatch.offer_key,
    mismatch.excluded_charges,
    mismatch.mandatory_charges
FROM mismatch
CROSS JOIN ref.analysis AS analysis
