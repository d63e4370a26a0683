-- One row per source, market and product type: the price of the right to cancel.
-- planned: Number of requested cells.
-- answered: Number of requested cells whose latest request was answered.
-- comparable: Number of stays, rooms and boards seen both refundable and not; see mart.refundable_premium.
-- mean_premium_pct: Mean premium of the refundable offer, in percent of the non-refundable total.
-- median_premium_pct: Median premium of the refundable offer, in percent of the non-refundable total.
-- not_dearer: Number of comparable pairs whose refundable offer costs no more.
-- with_break_even: Number of comparable pairs with a break-even probability.
-- median_break_even_pct: Median probability of cancelling, in percent, above which refundable is cheaper.
WITH compared AS (
    SELECT
        premium.source,
        premium.market,
        premium.product_type,
        count(*) AS comparable,
        -- Decimals: the last bit of a sum of fractions depends on the order of its rows.
        avg(premium.premium_pct::DECIMAL(38, 9)) AS mean_premium_pct,
        median(premium.premium_pct) AS median_premium_pct,
        count(*) FILTER (WHERE premium.premium <= 0) AS not_dearer,
        count(premium.break_even_pct) AS with_break_even,
        median(premium.break_even_pct) AS median_break_even_pct
    FROM mart.refundable_premium AS premium
    GROUP BY premium.source, premium.market, premium.product_type
)

SELECT
    cell.source,
    cell.market,
    cell.product_type,
    cell.planned,
    cell.answered,
    coalesce(compared.comparable, 0) AS comparable,
    compared.mean_premium_pct,
    compared.median_premium_pct,
    coalesce(compared.not_dearer, 0) AS not_dearer,
    coalesce(compared.with_break_even, 0) AS with_break_even,
    compared.median_break_even_pct
FROM mart.market_coverage AS cell
LEFT JOIN compared
    ON
        compared.source = cell.source
        AND compared.market = cell.market
        AND compared.product_type = cell.product_type
