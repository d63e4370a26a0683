-- One row per source, currency and whether floors were converted: how far the floors of a hotel-only offer differ.
-- is_converted: Whether a floor was converted at the reference rate; see mart.floor_dispersion.
-- planned: Number of hotel-only cells requested, in all markets and currencies.
-- answered: Number of requested cells whose latest request was answered.
-- comparable: Number of offers whose floor at least two markets state in this currency, in one sweep.
-- apart: Number of comparable offers whose floors differ by more than tolerance_pct; + reference_rate_pct if converted.
-- apart_pct: apart in percent of comparable.
-- median_dispersion_pct: Median of 100 x (highest floor - lowest floor) / lowest floor over comparable offers.
-- highest_dispersion_pct: Largest dispersion, in percent.
WITH asked AS (
    SELECT
        coverage.source,
        sum(coverage.planned)::BIGINT AS planned,
        sum(coverage.answered)::BIGINT AS answered
    FROM mart.market_coverage AS coverage
    WHERE coverage.product_type = 'Hotel'
    GROUP BY coverage.source
)

SELECT
    dispersion.source,
    dispersion.currency,
    dispersion.is_converted,
    any_value(asked.planned) AS planned,
    any_value(asked.answered) AS answered,
    count(*) AS comparable,
    count(*) FILTER (
        WHERE dispersion.dispersion_pct > mart.tolerance_of(
            CASE WHEN dispersion.is_converted THEN 'reference_rate' ELSE 'same' END,
            analysis.tolerance_pct,
            analysis.reference_rate_pct
        )
    ) AS apart,
    100.0 * apart / comparable AS apart_pct,
    median(dispersion.dispersion_pct) AS median_dispersion_pct,
    max(dispersion.dispersion_pct) AS highest_dispersion_pct
FROM mart.floor_dispersion AS dispersion
CROSS JOIN ref.analysis AS analysis
LEFT JOIN asked ON asked.source = dispersion.source
GROUP BY dispersion.source, dispersion.currency, dispersion.is_converted
