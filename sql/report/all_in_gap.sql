-- One row per detail offer whose total equals another market's, but whose price with mandatory fees does not.
-- size_pct: Gap of the all-in prices, in percent of compared_all_in; > 0: the market is dearer.
-- amount: Gap of the all-in prices, in currency; > 0: the market is dearer.
-- market: Market whose fees deviate.
-- fees_compared: Number of mandatory fees known in both answers.
-- all_in: Total + mandatory fees in the market, in currency.
-- reference_answered: Total + mandatory fees in the reference market, in its own currency.
-- reference_all_in: reference_answered in currency, at the rate that makes the totals equal, not a reference rate.
-- compared_with: Market that it is compared with; if the reference market deviates, the middle one of those that agree.
-- compared_answered: Total + mandatory fees in the compared_with market, in compared_currency.
-- compared_all_in: compared_answered in currency, at the rate that makes the totals equal.
-- compared_currency: ISO 4217 code of the currency in which the compared_with market was answered.
-- severity: `low`, `medium` or `high`, by size_pct.
WITH sized AS (
    SELECT
        deviating.*,
        (deviating.all_in - deviating.compared_all_in)::DECIMAL(18, 4) AS amount,
        100 * amount::DOUBLE / deviating.compared_all_in::DOUBLE AS size_pct
    FROM mart.all_in_deviation AS deviating
)

SELECT
    'all_in_gap' AS rule,
    10 AS rule_version,
    mart.subject_key(rule, concat_ws('|', found.source, found.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(found.size_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    found.size_pct,
    found.amount,
    found.source,
    found.property_id,
    found.market,
    found.product_type,
    found.check_in,
    found.nights,
    found.party,
    found.currency,
    found.room_id,
    found.board_id,
    found.policy_key,
    found.reference_market,
    found.total,
    found.reference_converted,
    found.gap_pct,
    found.fees_compared,
    found.all_in,
    found.reference_answered,
    found.reference_all_in,
    format(
        '{} pays {:,.2f} {} with fees against {} in {}{}: {:+.1f}%; without fees the prices meet.{}',
        found.market,
        found.all_in::DOUBLE,
        found.currency,
        CASE
            WHEN found.compared_currency = found.currency THEN format('{:,.2f}', found.compared_answered::DOUBLE)
            ELSE format('{:,.2f} {}', found.compared_answered::DOUBLE, found.compared_currency)
        END,
        found.compared_with,
        CASE
            WHEN found.compared_currency = found.currency THEN ''
            ELSE format(' ({:,.2f} {} at the rate of the two totals)', found.compared_all_in::DOUBLE, found.currency)
        END,
        found.size_pct,
        CASE
            WHEN len(found.markets_agreed) > 0 THEN format(' {} other markets agree.', len(found.markets_agreed))
            WHEN len(found.standing_markets) > len(found.markets_alike) THEN ''
            WHEN found.is_lone THEN ' No third price with fees shows which of the two deviates.'
            WHEN len(found.markets_alike) = 1
                THEN ' The other markets do not agree with each other: one of them may deviate instead.'
            ELSE
                format(
                    ' Prices with fees in {} markets ({}) differ alike from {}: which side deviates is unknown.',
                    len(found.markets_alike),
                    array_to_string(found.markets_alike, ', '),
                    CASE
                        WHEN len(found.standing_markets) = 1 THEN 'the one in ' || found.standing_markets[1]
                        ELSE
                            format(
                                'those in {} ({})',
                                len(found.standing_markets),
                                array_to_string(found.standing_markets, ', ')
                            )
                    END
                )
        END
    ) AS finding,
    list_append(
        found.observations,
        mart.observation(
            'reference',
            found.source,
            found.property_id,
            found.reference_offer_key,
            found.reference_sweep_id,
            found.reference_search_id,
            found.reference_offer_no
        )
    ) AS evidence,
    mart.conversion(found.compared_currency, found.currency, found.rate, found.rate_date) AS fx,
    found.compared_with,
    found.compared_answered,
    found.compared_all_in,
    found.compared_currency
FROM sized AS found
CROSS JOIN ref.analysis AS analysis
