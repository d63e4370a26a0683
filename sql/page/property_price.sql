-- One row per property, stay, party, market and night: the cheapest hotel-only total of its list answers.
-- total: Total in the currency in which most markets of the property were requested.
WITH night AS (
    SELECT
        started_at,
        snapshot_date
    FROM mart.sweep
    ORDER BY started_at DESC
    -- As many rows as a chart can show.
    LIMIT 60
),

price AS (
    SELECT
        offer.property_id,
        offer.check_in,
        offer.nights,
        offer.party,
        offer.market,
        offer.currency,
        night.snapshot_date,
        min(offer.total)::DOUBLE AS total
    FROM mart.offer_history AS offer
    INNER JOIN night ON night.started_at BETWEEN offer.valid_from AND offer.last_seen_at
    WHERE
        offer.source = 'multi'
        AND offer.product_type = 'Hotel'
        AND offer.is_offered
        AND offer.total IS NOT NULL
        AND is_within(offer.property_id, offer.market, offer.check_in)
        AND offer.check_in >= (SELECT max(latest.snapshot_date) FROM night AS latest)
    GROUP BY ALL
)

SELECT price.* FROM price
SEMI JOIN (
    SELECT
        each.property_id,
        each.currency
    FROM price AS each
    GROUP BY each.property_id, each.currency
    QUALIFY
        row_number() OVER (PARTITION BY each.property_id ORDER BY count(DISTINCT each.market) DESC, each.currency) = 1
) AS chosen ON price.property_id = chosen.property_id AND price.currency = chosen.currency
ORDER BY ALL
