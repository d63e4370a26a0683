-- One row per match grade, source and offer (or group) of the sweep that was compared with the reference market.
-- The pairs, their currency_basis and verdicts are those of mart.market_parity; see there. board_family is '' for the
-- grades `exact` and `cheapest`, which do not distinguish pairs by it.
-- Detail answers that could not all be read are left out: see mart.comparable_offer.
WITH chosen AS (
    SELECT coalesce(analysis.reference_market, reference.market) AS market
    FROM ref.analysis AS analysis
    LEFT JOIN state.reference_choice AS reference ON TRUE
),

priced AS (
    SELECT
        'exact' AS match_grade,
        offer.source,
        offer.property_id,
        offer.market,
        offer.check_in,
        offer.currency_asked,
        offer.currency,
        offer.cell_key,
        coalesce(offer.room_stay_id, 0) AS room_no,
        '' AS board_family,
        offer.offer_key,
        offer.total,
        hash(
            offer.source,
            offer.product_type,
            offer.check_in,
            offer.nights,
            offer.party,
            coalesce(offer.room_stay_id, 0),
            offer.room_id,
            offer.board_id,
            offer.policy_key
        ) AS match_key
    FROM night.offer_observed AS offer
    WHERE
        offer.total > 0
        AND offer.currency IS NOT NULL
        AND offer.room_id IS NOT NULL
        AND offer.board_id IS NOT NULL
        AND (offer.is_whole OR offer.source = 'multi')

    UNION ALL BY NAME

    SELECT
        cheapest.match_grade,
        cheapest.source,
        cheapest.property_id,
        cheapest.market,
        cheapest.check_in,
        cheapest.currency_asked,
        cheapest.currency,
        cheapest.cell_key,
        cheapest.room_no,
        cheapest.board_family,
        cheapest.offer_key,
        cheapest.total,
        hash(
            cheapest.match_grade,
            cheapest.source,
            cheapest.product_type,
            cheapest.check_in,
            cheapest.nights,
            cheapest.party,
            cheapest.room_no,
            cheapest.board_family
        ) AS match_key
    FROM night.group_observed AS cheapest
),

asked AS (
    SELECT
        offer.source,
        offer.property_id,
        offer.market,
        offer.currency,
        offer.currency_asked,
        list(offer.currency) OVER (PARTITION BY offer.source, offer.property_id, offer.market) AS currencies
    FROM (
        SELECT DISTINCT
            priced.source,
            priced.property_id,
            priced.market,
            priced.currency,
            priced.currency_asked
        FROM priced
    ) AS offer
),

currency_pair AS (
    SELECT
        here.source,
        here.property_id,
        here.market,
        here.currency,
        here.currency_asked,
        there.market AS reference_market,
        there.currency AS reference_currency,
        there.currency_asked AS reference_currency_asked
    FROM asked AS here
    INNER JOIN asked AS there
        ON
            there.source = here.source
            AND there.property_id = here.property_id
    INNER JOIN chosen ON chosen.market = there.market
    WHERE here.market <> there.market
    QUALIFY
        row_number() OVER (
            PARTITION BY here.source, here.property_id, here.market, here.currency, here.currency_asked
            ORDER BY
                there.currency = here.currency DESC,
                list_contains(here.currencies, there.currency) DESC,
                there.currency_asked IS NOT DISTINCT FROM here.currency_asked DESC,
                there.currency ASC,
                there.currency_asked ASC NULLS FIRST
        ) = 1
),

-- The reference rates of the day of the sweep, by currency; the euro is listed with 1.
rate AS (
    SELECT
        fx_rate.currency,
        arg_max(fx_rate.rate, (fx_rate.rate_date, fx_rate.input_id)) AS rate
    FROM lake.fx_rate AS fx_rate
    CROSS JOIN night.sweep AS sweep
    WHERE
        fx_rate.currency <> 'EUR'
        AND fx_rate.rate_date <= sweep.snapshot_date
        AND fx_rate.rate_date >= sweep.snapshot_date - 7
    GROUP BY fx_rate.currency

    UNION ALL BY NAME

    SELECT
        'EUR' AS currency,
        1::DECIMAL(18, 8) AS rate
),

twin AS (
    SELECT
        priced.match_key,
        priced.source,
        priced.property_id,
        priced.market,
        priced.currency,
        arg_min(priced.total, priced.offer_key) AS total
    FROM priced
    SEMI JOIN currency_pair
        ON
            currency_pair.source = priced.source
            AND currency_pair.property_id = priced.property_id
            AND currency_pair.market = priced.market
            AND currency_pair.reference_currency = priced.currency
            AND currency_pair.currency <> priced.currency
    GROUP BY ALL
),

paired AS (
    SELECT
        offer.match_grade,
        offer.source,
        offer.offer_key,
        offer.property_id,
        offer.market,
        offer.check_in,
        offer.cell_key,
        offer.room_no,
        offer.board_family,
        offer.currency,
        offer.total,
        reference.market AS reference_market,
        reference.offer_key AS reference_offer_key,
        reference.cell_key AS reference_cell_key,
        reference.currency AS reference_currency,
        mart.currency_basis(offer.currency, reference.currency, twin.total) AS currency_basis,
        unit.minor_unit,
        CASE currency_basis
            WHEN 'same' THEN reference.total
            WHEN 'supplier_rate' THEN mart.converted(reference.total, offer.total, twin.total, unit.minor_unit)
            ELSE mart.converted(reference.total, here.rate, there.rate, unit.minor_unit)
        END AS reference_converted
    FROM priced AS offer
    INNER JOIN priced AS reference
        ON
            reference.match_key = offer.match_key
            AND reference.property_id = offer.property_id
    INNER JOIN currency_pair
        ON
            currency_pair.source = offer.source
            AND currency_pair.property_id = offer.property_id
            AND currency_pair.market = offer.market
            AND currency_pair.currency = offer.currency
            AND currency_pair.currency_asked IS NOT DISTINCT FROM offer.currency_asked
            AND currency_pair.reference_market = reference.market
            AND currency_pair.reference_currency = reference.currency
            AND currency_pair.reference_currency_asked IS NOT DISTINCT FROM reference.currency_asked
    LEFT JOIN twin
        ON
            twin.match_key = offer.match_key
            AND twin.source = offer.source
            AND twin.property_id = offer.property_id
            AND twin.market = offer.market
            AND twin.currency = CASE WHEN reference.currency <> offer.currency THEN reference.currency END
    LEFT JOIN rate AS here ON here.currency = offer.currency
    LEFT JOIN rate AS there ON there.currency = reference.currency
    LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
)

SELECT
    paired.match_grade,
    paired.source,
    paired.offer_key,
    paired.property_id,
    paired.market,
    paired.check_in,
    paired.cell_key,
    paired.room_no,
    paired.board_family,
    paired.currency,
    paired.reference_market,
    paired.reference_offer_key,
    paired.reference_cell_key,
    paired.reference_currency,
    paired.currency_basis,
    100 * (paired.total - paired.reference_converted)::DOUBLE / paired.reference_converted::DOUBLE AS gap_pct,
    paired.total - paired.reference_converted
    > mart.tolerance(
        paired.reference_converted,
        mart.tolerance_of(paired.currency_basis, analysis.tolerance_pct, analysis.reference_rate_pct),
        paired.minor_unit
    ) AS is_losing
FROM paired
CROSS JOIN ref.analysis AS analysis
WHERE paired.reference_converted > 0
