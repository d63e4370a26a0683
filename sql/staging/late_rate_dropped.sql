-- One row per market and pair of currencies whose findings about a late rate are dropped tonight.
-- A rate is the market's: if fewer than a third of its properties are at a late rate, their prices deviate for another
-- reason, and rates explain it by chance. A late rate that was found before stays while a sixth of them show it.
-- Where the reference market's currency is late, prices of other markets are off in the other direction: they are no
-- findings of their own, even at a property where few enough markets are off to leave it open which one is late.
WITH late AS (
    SELECT
        found.market,
        found.fx.from_currency AS base_currency,
        found.fx.to_currency AS currency,
        count(DISTINCT found.property_id) AS properties,
        sign(median(found.size_pct)) AS side
    FROM night.found AS found
    WHERE found.rule = 'fx_markup' AND found.evidence[1].role = 'market'
    GROUP BY found.market, base_currency, found.fx.to_currency
),

few AS (
    SELECT
        late.market,
        late.base_currency,
        late.currency
    FROM late
    INNER JOIN mart.market_on_sale AS sale ON sale.market = late.market
    LEFT JOIN state.flag_open AS before
        ON
            before.rule = 'fx_markup'
            AND before.evidence[1].role = 'market'
            AND before.market = late.market
            AND before.fx.from_currency = late.base_currency
            AND before.fx.to_currency = late.currency
    GROUP BY late.market, late.base_currency, late.currency
    HAVING
        CASE WHEN count(before.flag_id) > 0 THEN 6 ELSE 3 END * any_value(late.properties) < any_value(sale.properties)
)

SELECT
    few.market,
    few.base_currency,
    few.currency
FROM few

UNION ALL

SELECT
    late.market,
    late.base_currency,
    late.currency
FROM late
SEMI JOIN (
    SELECT many.*
    FROM late AS many
    ANTI JOIN few
        ON
            few.market = many.market
            AND few.base_currency = many.base_currency
            AND few.currency = many.currency
) AS of_reference
    ON
        of_reference.currency = late.base_currency
        AND of_reference.market <> late.market
        AND of_reference.side <> late.side
