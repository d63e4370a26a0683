-- One row per published sweep and pair of currencies: the reference rate between them on the day of the sweep.
-- sweep_id: Sweep: start in UTC and a short hash of what was asked.
-- from_currency: ISO 4217 code of the currency that is converted.
-- to_currency: ISO 4217 code of the currency that it is converted to.
-- rate: Units of to_currency for one from_currency.
-- to_rate: Units of to_currency per euro; to_rate / from_rate is the rate, exactly.
-- from_rate: Units of from_currency per euro.
-- rate_date: Business day of the rate: the older of the two currencies' days.
-- lowest_rate: Lowest rate possible with any two rates of that day and the seven days before.
-- highest_rate: Highest rate possible with any two rates of that day and the seven days before.
-- lowest_month_rate: Lowest rate possible with any two rates of that day and the thirty days before.
-- highest_month_rate: Highest rate possible with any two rates of that day and the thirty days before.
-- month_since: First of these thirty-one days with a rate of both currencies.
SELECT
    there.sweep_id,
    there.currency AS from_currency,
    here.currency AS to_currency,
    here.rate::DOUBLE / there.rate::DOUBLE AS rate,
    here.rate AS to_rate,
    there.rate AS from_rate,
    least(here.rate_date, there.rate_date) AS rate_date,
    here.lowest_rate::DOUBLE / there.highest_rate::DOUBLE AS lowest_rate,
    here.highest_rate::DOUBLE / there.lowest_rate::DOUBLE AS highest_rate,
    here.lowest_month_rate::DOUBLE / there.highest_month_rate::DOUBLE AS lowest_month_rate,
    here.highest_month_rate::DOUBLE / there.lowest_month_rate::DOUBLE AS highest_month_rate,
    greatest(here.month_since, there.month_since) AS month_since
FROM mart.fx_of_sweep AS here
INNER JOIN mart.fx_of_sweep AS there
    ON
        there.sweep_id = here.sweep_id
        AND there.currency <> here.currency
