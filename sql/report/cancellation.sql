-- One row per source, market, product type and refundability: deadlines and strictness of the offers on sale.
-- planned: Number of requested cells.
-- answered: Number of requested cells whose latest request was answered.
-- offers: Number of offers on sale.
-- comparable: Number of offers with a known strictness.
-- with_deadline: Number of offers that state until when cancelling is free of charge.
-- free_now: Number of offers that could be cancelled free of charge at their last sighting.
-- median_free_hours: Median of the hours before check-in at which the earliest penalty starts.
-- mean_strictness: Mean strictness, 0 (free until check-in) to 1 (full total at any time); see mart.policy_strictness.
SELECT
    offer.source,
    offer.market,
    offer.product_type,
    offer.refundability,
    any_value(cell.planned) AS planned,
    any_value(cell.answered) AS answered,
    count(*) AS offers,
    count(offer.strictness) AS comparable,
    count(*) FILTER (WHERE offer.deadline_rule <> 'none') AS with_deadline,
    count(*) FILTER (WHERE offer.is_free_now) AS free_now,
    median(offer.free_cancel_hours) AS median_free_hours,
    -- To nine places: the last bit of a sum of fractions depends on the order of its rows.
    round(favg(offer.strictness), 9) AS mean_strictness
FROM mart.cancellation AS offer
LEFT JOIN mart.market_coverage AS cell
    ON
        cell.source = offer.source
        AND cell.market = offer.market
        AND cell.product_type = offer.product_type
GROUP BY offer.source, offer.market, offer.product_type, offer.refundability
