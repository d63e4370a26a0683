-- One row per source, market and sweep before this night that mart.market_silence tells of.
-- started_at: Start of that sweep.
-- sold_at: Start of the last sweep before it that found an offer there.
SELECT
    CASE silence.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
    silence.market,
    silence.started_at,
    silence.sold_at
FROM mart.market_silence AS silence
