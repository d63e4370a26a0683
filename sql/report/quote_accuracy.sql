-- One row per source, market and age of the price: whether quotes matched the price of the search.
-- age_group: Age of the price when it was quoted, in steps; NULL: nothing is known of the call.
-- asked: Quotes that were asked, or were about to be.
-- answered: Of those, answered for certain: matched, raised, lowered or gone; the denominator of the shares.
-- matched: The same price.
-- raised: A higher price.
-- lowered: A lower price.
-- gone: Answered without an offer.
-- not_told: Refused, not comparable, failed or unknown: they say nothing of the price.
-- matched_share: matched / answered.
-- median_raise_pct: Median rise of those raised, in percent; NULL: none was.
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
    count(*) - answered AS not_told, -- noqa: RF02
    matched::DOUBLE / nullif(answered, 0) AS matched_share, -- noqa: RF02
    round(median(quote.total_change_pct) FILTER (WHERE quote.outcome = 'raised'), 6) AS median_raise_pct
FROM mart.quote_check AS quote
GROUP BY quote.source, quote.market, quote.age_group
