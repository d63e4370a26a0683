-- One row per mark-up, open or ended, that a rate of the last 31 days explains: the supplier's own rate lags.
-- Such a rate is the supplier's, whichever property shows it first, so no property is called about it.
-- flag_id: Finding of the rule fx_markup; see report.flag_history.
-- first_flagged_at: Start of the sweep that raised it.
SELECT
    flag.flag_id,
    flag.first_flagged_at
FROM report.flag_history AS flag
CROSS JOIN ref.analysis AS analysis
LEFT JOIN mart.cross_rate AS moved
    ON
        moved.sweep_id = flag.evidence[1].sweep_id
        AND moved.from_currency = flag.fx.from_currency
        AND moved.to_currency = flag.fx.to_currency
WHERE
    flag.rule = 'fx_markup'
    AND (
        -- Against the reference market, only what such a rate explains is a mark-up.
        flag.evidence[1].role = 'market'
        OR mart.fits_rates(
            moved.rate * (1 + flag.size_pct / 100),
            1,
            moved.lowest_month_rate,
            moved.highest_month_rate,
            analysis.tolerance_pct
        )
    )
