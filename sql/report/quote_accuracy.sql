-- One row per source, market and age of the price: whether quotes matched the price of the search.
-- age_group: Age of the price when it was quoted, in ranges of hours; NULL: the call's time is unknown.
-- asked: Number of quotes requested, or about to be.
-- answered: Number of quotes with a definite answer: matched, raised, lowered or gone; the denominator of shares.
-- matched: Number of quotes at the same price.
-- raised: Number of quotes at a higher price.
-- lowered: Number of quotes at a lower price.
-- gone: Number of quotes answered without an offer.
-- not_told: Number of quotes refused, not comparable, failed or unknown: they say nothing about the price.
-- matched_share: matched / answered.
-- median_raise_pct: Median increase of raised quotes, in percent; NULL: none was raised.
SELECT
    quote.source,
    quote.market,
    quote.age_group,
    count(*) AS asked,
    count(*) FILTER (WHERE quote.outcome IN ('matched', 'raised', 'lowered', 'gone')) AS answered,
    count(*) FILTER (WHERE quote.outcome = 'matched') AS matched,
    count(*) FILTER (WHERE quote.outcome = 'raised') AS raised,
    count(*) FILTER (WHERE quote.outcome = 'lowered') AS lowered,
    count(*) FILTER (WHERE quote.outcome = 'gone') AS gone,
    count(*) - answered AS not_told,
    matched::DOUBLE / nullif(answered, 0) AS matched_share,
    round(median(quote.total_change_pct) FILTER (WHERE quote.outcome = 'raised'), 6) AS median_raise_pct
FROM mart.quote_check AS quote
GROUP BY quote.source, quote.market, quote.age_group
