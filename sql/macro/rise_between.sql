-- Logarithmic rise of a market whose prices rise on different nights, between two sweeps (see mart.explained_rise).
-- earlier, later: Values of spread of mart.market_movement at the sweeps.
CREATE OR REPLACE MACRO mart.rise_between(earlier, later) AS (
    mart.explained_rise(later['rise'] - earlier['rise'], later['share'] - earlier['share'])
)
