-- One row per market and currency in which most properties have moved most of their prices in one direction tonight.
-- A move of the entire market is no reason to call a property. Each property counts once, however many offers it has.
-- A currency requested once a week moved during that week, not tonight: offers last seen more than silent_nights before
-- the market's last earlier offers do not count.
-- median_pct: Median over these properties of the median change of a property's totals, in percent.
-- properties: Number of properties that moved in this direction; at least three, by a median of at least disparity_pct.
-- markets: Number of markets with an offer seen tonight and before.
-- rate_pct: Change of a reference rate within eight days that explains the median, in percent; NULL: none does.
-- The supplier may follow rates late, so the move is that of a rate between any two days, not only until tonight. It
-- converts from the euro, or, if most prices in euros moved too, from a currency in which a market's prices did not:
-- where all currencies move, prices have moved, and that a rate has moved as far is chance.
WITH latest AS (
    SELECT
        max(sweep.started_at) AS started_at,
        max_by(sweep.sweep_id, sweep.started_at) AS sweep_id,
        max_by(sweep.snapshot_date, sweep.started_at) AS snapshot_date
    FROM mart.sweep AS sweep
),

seen AS (
    SELECT
        offer.market,
        offer.currency,
        offer.property_id,
        count(*) AS offers
    FROM mart.offer_latest AS offer
    INNER JOIN latest ON latest.started_at = offer.last_seen_at
    WHERE
        offer.first_seen_at < latest.started_at
        AND offer.total > 0
        AND is_within(offer.property_id, offer.market, offer.check_in)
    GROUP BY offer.market, offer.currency, offer.property_id
),

-- When each market last had offers before tonight, in any currency.
sold AS (
    SELECT
        counted.market,
        max(counted.snapshot_date) AS snapshot_date
    FROM state.cell_count AS counted
    CROSS JOIN latest
    WHERE counted.sweep_id <> latest.sweep_id AND counted.offered > 0
    GROUP BY counted.market
),

moved AS (
    SELECT
        move.market,
        move.currency,
        move.property_id,
        count(*) AS offers,
        median(move.change_pct) AS change_pct
    FROM report.price_move AS move
    LEFT JOIN mart.sweep AS before ON before.sweep_id = move.previous_sweep_id
    LEFT JOIN sold ON sold.market = move.market
    CROSS JOIN ref.analysis AS analysis
    WHERE sold.snapshot_date IS NULL OR before.snapshot_date >= sold.snapshot_date - analysis.silent_nights
    GROUP BY move.market, move.currency, move.property_id
),

judged AS (
    SELECT
        seen.market,
        seen.currency,
        CASE WHEN 2 * moved.offers > seen.offers THEN moved.change_pct END AS change_pct
    FROM seen
    LEFT JOIN moved
        ON
            moved.market = seen.market
            AND moved.currency IS NOT DISTINCT FROM seen.currency
            AND moved.property_id = seen.property_id
),

counted AS (
    SELECT
        judged.market,
        judged.currency,
        count(*) AS on_sale,
        count(*) FILTER (WHERE judged.change_pct > 0) AS raised,
        count(*) FILTER (WHERE judged.change_pct < 0) AS lowered,
        greatest(raised, lowered) AS properties,
        CASE
            WHEN raised >= lowered THEN median(judged.change_pct) FILTER (WHERE judged.change_pct > 0)
            ELSE median(judged.change_pct) FILTER (WHERE judged.change_pct < 0)
        END AS median_pct
    FROM judged
    GROUP BY judged.market, judged.currency
),

alike AS (
    SELECT counted.*
    FROM counted
    CROSS JOIN ref.analysis AS analysis
    WHERE
        counted.properties >= 3
        AND 2 * counted.properties > counted.on_sale
        AND 4 * counted.properties >= 3 * (counted.raised + counted.lowered)
        AND abs(counted.median_pct) >= analysis.disparity_pct
),

-- Currencies in which the prices of a market stood still, and the euro if nothing is sold in it.
still AS (
    SELECT DISTINCT counted.currency
    FROM counted
    ANTI JOIN alike ON alike.market = counted.market AND alike.currency IS NOT DISTINCT FROM counted.currency
    WHERE counted.currency IS NOT NULL

    UNION

    SELECT 'EUR' AS currency
    FROM counted
    HAVING count(*) FILTER (WHERE counted.currency = 'EUR') = 0
),

base AS (
    SELECT still.currency
    FROM still
    QUALIFY still.currency = 'EUR' OR NOT bool_or(still.currency = 'EUR') OVER ()
),

-- The rates of tonight and of the eight days before, by the business days on which they were set.
rate AS (
    SELECT
        fx_rate.rate_date,
        fx_rate.currency,
        arg_max(fx_rate.rate, fx_rate.input_id)::DOUBLE AS rate
    FROM lake.fx_rate AS fx_rate
    CROSS JOIN latest
    WHERE
        fx_rate.rate_date <= latest.snapshot_date
        -- On the first of these days, the rate of an earlier business day may have applied.
        AND fx_rate.rate_date >= latest.snapshot_date - 15
    GROUP BY fx_rate.rate_date, fx_rate.currency
    QUALIFY
        fx_rate.rate_date > any_value(latest.snapshot_date) - 8
        OR row_number() OVER (
            PARTITION BY fx_rate.currency, fx_rate.rate_date > any_value(latest.snapshot_date) - 8
            ORDER BY fx_rate.rate_date DESC
        ) = 1
),

with_euro AS (
    SELECT rate.*
    FROM rate

    UNION ALL

    SELECT DISTINCT
        rate.rate_date,
        'EUR' AS currency,
        1 AS rate
    FROM rate
),

crossed AS (
    SELECT
        here.currency,
        base.currency AS base_currency,
        here.rate_date,
        here.rate / there.rate AS rate
    FROM with_euro AS here
    CROSS JOIN base
    INNER JOIN with_euro AS there ON there.currency = base.currency AND there.rate_date = here.rate_date
    WHERE here.currency <> base.currency
),

step AS (
    SELECT
        later.currency,
        round(100 * (later.rate / earlier.rate - 1), 6) AS change_pct
    FROM crossed AS later
    INNER JOIN crossed AS earlier
        ON
            earlier.currency = later.currency
            AND earlier.base_currency = later.base_currency
            AND earlier.rate_date < later.rate_date
)

SELECT
    alike.market,
    alike.currency,
    alike.properties,
    (SELECT count(DISTINCT seen.market) FROM seen) AS markets,
    alike.median_pct,
    arg_min(step.change_pct, abs(step.change_pct - alike.median_pct)) AS rate_pct
FROM alike
CROSS JOIN ref.analysis AS analysis
LEFT JOIN step
    ON
        step.currency = alike.currency
        AND abs(step.change_pct - alike.median_pct) <= analysis.tolerance_pct
GROUP BY alike.market, alike.currency, alike.properties, alike.median_pct
ORDER BY alike.market, alike.currency
