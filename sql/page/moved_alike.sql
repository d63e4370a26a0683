-- One row per market and currency in which most properties have moved most of their prices in one direction tonight.
-- A move of the entire market is no reason to call a property. Each property counts once, however many offers it has.
-- A currency requested once a week moved during that week, not tonight: offers last seen more than silent_nights before
-- the market's last earlier offers do not count.
-- median_pct: Median over these properties of the median change of a property's totals, in percent.
-- properties: Number of properties that moved in this direction; at least three, by a median of at least disparity_pct.
-- markets: Number of markets with an offer seen tonight and before.
-- rate_pct: Change of the reference rate within eight days that explains the median, in percent; NULL: none does.
WITH latest AS (
    SELECT
        max(sweep.started_at) AS started_at,
        max_by(sweep.sweep_id, sweep.started_at) AS sweep_id
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
        greatest(raised, lowered) AS properties, -- noqa: RF02
        CASE
            WHEN raised >= lowered THEN median(judged.change_pct) FILTER (WHERE judged.change_pct > 0) -- noqa: RF02
            ELSE median(judged.change_pct) FILTER (WHERE judged.change_pct < 0)
        END AS median_pct
    FROM judged
    GROUP BY judged.market, judged.currency
),

rated AS (
    SELECT
        counted.*,
        100 * CASE
            WHEN counted.median_pct > 0 THEN rate.rate::DOUBLE / rate.lowest_rate::DOUBLE - 1
            ELSE rate.rate::DOUBLE / rate.highest_rate::DOUBLE - 1
        END AS rate_pct
    FROM counted
    CROSS JOIN latest
    LEFT JOIN mart.fx_of_sweep AS rate ON rate.sweep_id = latest.sweep_id AND rate.currency = counted.currency
    WHERE
        counted.properties >= 3
        AND 2 * counted.properties > counted.on_sale
        AND 4 * counted.properties >= 3 * (counted.raised + counted.lowered)
)

SELECT
    rated.market,
    rated.currency,
    rated.properties,
    (SELECT count(DISTINCT seen.market) FROM seen) AS markets,
    rated.median_pct,
    CASE
        WHEN
            abs(rated.rate_pct) >= analysis.disparity_pct
            AND abs(rated.rate_pct - rated.median_pct) <= analysis.tolerance_pct
            THEN rated.rate_pct
    END AS rate_pct
FROM rated
CROSS JOIN ref.analysis AS analysis
WHERE abs(rated.median_pct) >= analysis.disparity_pct
ORDER BY rated.market, rated.currency
