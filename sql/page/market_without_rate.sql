-- One row per market with properties that lack a reference rate to compare them with the reference market tonight.
-- properties: Number of properties on sale in both markets that share no currency and have no rate between theirs.
-- on_sale: Number of properties on sale in both markets.
-- currencies: Their currencies without a reference rate on the day of the sweep or in the seven days before.
-- never_rated: Those of the currencies without any rate ever loaded.
-- A market that is also answered in the reference market's currency needs no rate: the supplier's own is known.
WITH latest AS (
    SELECT
        max(sweep.started_at) AS started_at,
        max_by(sweep.sweep_id, sweep.started_at) AS sweep_id
    FROM mart.sweep AS sweep
),

sold AS (
    SELECT
        offer.market,
        offer.property_id,
        list(DISTINCT offer.currency) AS currencies
    FROM mart.offer_latest AS offer
    INNER JOIN latest ON latest.started_at = offer.last_seen_at
    WHERE
        offer.total > 0
        AND offer.currency IS NOT NULL
        AND is_within(offer.property_id, offer.market, offer.check_in)
    GROUP BY offer.market, offer.property_id
),

-- The euro is the base of all rates.
rated AS (
    SELECT list_append(coalesce(list(fx.currency), []), 'EUR') AS currencies
    FROM mart.fx_of_sweep AS fx
    INNER JOIN latest ON latest.sweep_id = fx.sweep_id
),

pair AS (
    SELECT
        here.market,
        list_has_any(here.currencies, there.currencies)
        OR (
            list_has_any(here.currencies, rated.currencies)
            AND list_has_any(there.currencies, rated.currencies)
        ) AS is_compared,
        list_filter(
            list_concat(here.currencies, there.currencies),
            LAMBDA currency: NOT list_contains(rated.currencies, currency)
        ) AS unrated
    FROM sold AS here
    INNER JOIN sold AS there ON there.property_id = here.property_id
    INNER JOIN mart.reference_market AS chosen ON chosen.reference_market = there.market
    CROSS JOIN rated
    WHERE here.market <> there.market
),

counted AS (
    SELECT
        pair.market,
        count(*) FILTER (WHERE NOT pair.is_compared) AS properties,
        count(*) AS on_sale,
        list_sort(list_distinct(flatten(list(pair.unrated) FILTER (WHERE NOT pair.is_compared)))) AS currencies
    FROM pair
    GROUP BY pair.market
)

SELECT
    counted.market,
    counted.properties,
    counted.on_sale,
    counted.currencies,
    list_filter(
        counted.currencies,
        LAMBDA currency: NOT coalesce(list_contains(list(DISTINCT fx_rate.currency), currency), FALSE)
    ) AS never_rated
FROM counted
LEFT JOIN lake.fx_rate AS fx_rate ON list_contains(counted.currencies, fx_rate.currency)
WHERE counted.properties > 0
GROUP BY counted.market, counted.properties, counted.on_sale, counted.currencies
ORDER BY counted.market
