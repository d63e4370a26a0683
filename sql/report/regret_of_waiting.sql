-- One row per source, market, product type and lead days: what waiting gained or cost, for stays that have begun.
-- offers: Number of offers on sale that many days before check-in, where such stays were answered on that day.
-- answered_later: Number of offers whose cell was answered again later.
-- gone_later: Number of offers that were not on sale when last answered: waiting lost them.
-- comparable: Number of those answered again that were seen with a total again.
-- gone_share: gone_later / answered_later.
-- cheaper_later_share: Share of comparable offers that were cheaper at some later time.
-- dearer_last_share: Share of comparable offers that were dearer when last seen.
-- lowest_later_pct: Mean change to the lowest later total, in percent (geometric); < 0: regret of booking.
-- last_pct: Mean change to the last total, in percent (geometric); > 0: regret of waiting.
SELECT
    waiting.source,
    waiting.market,
    waiting.product_type,
    waiting.lead_days,
    sum(waiting.offers)::BIGINT AS offers,
    sum(waiting.answered_later)::BIGINT AS answered_later,
    sum(waiting.gone_later)::BIGINT AS gone_later,
    sum(waiting.comparable)::BIGINT AS comparable,
    sum(waiting.gone_later)::DOUBLE / nullif(sum(waiting.answered_later), 0) AS gone_share,
    sum(waiting.cheaper_later)::DOUBLE / nullif(sum(waiting.comparable), 0) AS cheaper_later_share,
    sum(waiting.dearer_last)::DOUBLE / nullif(sum(waiting.comparable), 0) AS dearer_last_share,
    round(
        100 * (exp(sum(waiting.ln_lowest::DECIMAL(38, 9))::DOUBLE / nullif(sum(waiting.comparable), 0)) - 1), 6
    ) AS lowest_later_pct,
    round(
        100 * (exp(sum(waiting.ln_last::DECIMAL(38, 9))::DOUBLE / nullif(sum(waiting.comparable), 0)) - 1), 6
    ) AS last_pct
FROM state.waiting AS waiting
GROUP BY waiting.source, waiting.market, waiting.product_type, waiting.lead_days
