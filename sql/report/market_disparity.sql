-- One row per source and offer whose price in one market deviates from its price in another.
-- size_pct: Gap in percent of compared_total; > 0: the market is dearer.
-- unexplained_pct: Part of size_pct that no reference rate of eight days, nor other markets in its currency, explain.
-- amount: Gap in currency: total - compared_total; > 0: the market is dearer.
-- market: Market whose price deviates.
-- compared_with: Market that it is compared with; if the reference market deviates, the median one of those that agree.
-- reference_market: Reference market, with which all were compared.
-- markets_compared: Number of markets compared with the reference market in one currency; if none, in any currency.
-- markets_apart: Number of compared markets that deviate in the same direction, or are at the level of those that do.
-- currency_basis: `same`: both answered in currency; `reference_rate`: one converted at the reference rate of the day.
-- total: Total in the market, as answered in currency.
-- compared_total: Total in the compared_with market, in currency; converted if it was answered in another currency.
-- compared_answered: The same total as answered, in compared_currency.
-- compared_currency: ISO 4217 code of the currency in which the compared_with market was answered.
-- losing_snapshots: Consecutive snapshots in which the market was dearer than the reference market; NULL: unknown.
-- evidence: Observations behind the finding, with their role; `witness`: another market; `other`: one that is no proof.
-- severity: `low`, `medium` or `high`, by unexplained_pct.
SELECT
    'market_disparity' AS rule,
    21 AS rule_version,
    mart.subject_key(rule, concat_ws('|', found.source, found.offer_key)) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    100 * (found.total - found.compared_total)::DOUBLE / found.compared_total::DOUBLE AS size_pct,
    -- No rate alone makes a finding severe.
    CASE
        WHEN found.currency_basis = 'same' THEN size_pct
        ELSE found.unexplained_pct
    END AS unexplained_pct,
    mart.severity(unexplained_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    (found.total - found.compared_total)::DECIMAL(18, 4) AS amount,
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
    found.compared_with,
    found.reference_market,
    found.markets_compared,
    found.markets_apart,
    found.total,
    found.compared_total,
    found.compared_answered,
    found.compared_currency,
    found.currency_basis,
    found.losing_snapshots,
    format(
        '{} pays {:,.2f} {} against {} in {}{}: {:+.1f}%{}.{}{}',
        found.market,
        found.total::DOUBLE,
        found.currency,
        CASE
            WHEN found.currency_basis = 'same' THEN format('{:,.2f}', found.compared_answered::DOUBLE)
            ELSE format('{:,.2f} {}', found.compared_answered::DOUBLE, found.compared_currency)
        END,
        found.compared_with,
        CASE
            WHEN found.currency_basis = 'same' THEN ''
            ELSE format(' ({:,.2f} {} at the reference rate)', found.compared_total::DOUBLE, found.currency)
        END,
        size_pct,
        CASE
            WHEN
                found.currency_basis = 'same'
                OR len(found.alike_markets) > 0
                OR round(abs(size_pct) - abs(unexplained_pct), 1) < 0.5
                THEN ''
            ELSE format(', {:+.1f}% from the closest rate of the last eight days', unexplained_pct)
        END,
        CASE
            WHEN len(found.alike_markets) = 0 THEN ''
            ELSE
                format(
                    ' All markets in {} deviate ({}): the cause is their prices, or the supplier''s exchange rate.',
                    found.currency,
                    array_to_string(found.alike_markets, ', ')
                )
        END,
        CASE
            WHEN found.is_of_two
                THEN
                    format(
                        ' Only these two were answered in {}: which of them deviates depends on the exchange rate.',
                        found.currency
                    )
            WHEN found.is_in_disagreement
                THEN ' The other markets do not agree with each other: one of them may deviate instead.'
            WHEN found.is_unconfirmed AND len(found.split_markets) = 0
                THEN
                    format(
                        ' No other market agrees with {}: which of them deviates is unknown.',
                        found.compared_with
                    )
            WHEN len(found.evidence) = 2 AND found.currency_basis = 'same'
                THEN format(' No third price in {} shows which of the two deviates.', found.currency)
            WHEN len(found.evidence) = 2 THEN ' No third price shows which of the two deviates.'
            WHEN len(found.split_markets) = 0 THEN ''
            ELSE
                format(
                    ' Prices in {} markets ({}) differ alike from those in {} ({}): which side deviates is unknown.',
                    len(found.split_markets),
                    array_to_string(found.split_markets, ', '),
                    len(found.standing_markets),
                    array_to_string(found.standing_markets, ', ')
                )
        END
    ) AS finding,
    found.evidence,
    mart.conversion(found.compared_currency, found.currency, found.rate, found.rate_date) AS fx
FROM mart.price_deviation AS found
CROSS JOIN ref.analysis AS analysis
