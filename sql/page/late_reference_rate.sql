-- One row per currency of tonight's prices whose reference rate is of an earlier day than any bank holiday explains.
-- rate_date: Day of the rate that tonight's prices are converted at.
-- weekdays: Number of weekdays after it and before the night; central banks never close for as many as three.
WITH latest AS (
    SELECT
        max(sweep.started_at) AS started_at,
        max_by(sweep.sweep_id, sweep.started_at) AS sweep_id,
        max_by(sweep.snapshot_date, sweep.started_at) AS snapshot_date
    FROM mart.sweep AS sweep
)

SELECT
    fx.currency,
    fx.rate_date,
    len(
        list_filter(
            generate_series(fx.rate_date + 1, latest.snapshot_date - 1, INTERVAL 1 DAY),
            LAMBDA day: isodow(day) < 6
        )
    ) AS weekdays
FROM mart.fx_of_sweep AS fx
INNER JOIN latest ON latest.sweep_id = fx.sweep_id
SEMI JOIN (
    SELECT
        offer.currency,
        offer.last_seen_at
    FROM mart.offer_latest AS offer
    WHERE is_within(offer.property_id, offer.market, offer.check_in)
) AS sold
    ON
        sold.currency = fx.currency
        AND sold.last_seen_at = latest.started_at
WHERE
    fx.currency <> 'EUR'
    AND weekdays >= 3
ORDER BY fx.currency
