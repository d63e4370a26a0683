-- One row per match grade, source and offer that the reference market also had in the same sweep: the two prices.
-- reference_market: Market that the offer is compared with.
-- reference_offer_key: Offer key of the reference offer: the one that the offer is compared with.
-- reference_currency: ISO 4217 code of the reference offer's currency; equal to currency wherever it was requested.
-- reference_total: Total of the reference offer, in reference_currency.
-- currency_basis: Where rate comes from: `same` (none needed), `supplier_rate` or `reference_rate`.
-- reference_converted: reference_total in currency, at `rate`, rounded to its minor unit.
-- tolerance: Largest absolute gap that still meets, in currency; larger at a reference rate.
-- gap: total - reference_converted, in currency; > 0: dearer than in the reference market.
-- gap_pct: gap in percent of reference_converted; > 0: dearer than in the reference market.
-- verdict: `win`: cheaper than in the reference market, `meet`, or `lose`: dearer than there.
-- severity: Size of the gap: `low`, `medium` or `high`; NULL where the prices meet.
-- rate: Units of currency per unit of reference_currency, on currency_basis; NULL: the currencies are the same.
-- reference_rate: Units of currency per unit of reference_currency, at reference rates; NULL: no rate, or none needed.
-- rate_date: Business day of reference_rate: the older of the two currencies' days; NULL: no reference_rate.
-- losing_snapshots: Consecutive snapshots in which it was dearer, up to the last comparison on this basis.
-- losing_since: Start of the first sweep of losing_snapshots.
-- reference_sweep_id: Sweep that observed the reference offer.
-- reference_search_id: Search that observed the reference offer.
-- reference_offer_no: Number of the reference offer in the answer to reference_search_id.
-- reference_board_id: Board basis id of the reference offer.
-- reference_policy_key: Hash of the cancellation penalties of the reference offer.
-- reference_room_id: Room id of the reference offer.
-- reference_cell_key: Cell of the reference offer.
-- reference_pre_promo_total: Total before promotions of the reference offer, in reference_currency.
-- reference_promotion_key: Hash of the promotions of the reference offer.
-- reference_included_charges: Taxes and fees included in reference_total, in reference_currency. Detail only.
-- If the market was answered in both currencies, its own two totals give the supplier's rate. Otherwise the rate is the
-- reference rate of the sweep's day. Pairs on different bases are never counted together.
-- Below the exact grade, losing_snapshots follows the cheapest offer of the group, whichever offer that was.
WITH comparable AS MATERIALIZED (
    FROM mart.comparable_offer
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
            latest.source,
            latest.property_id,
            latest.market,
            latest.currency,
            latest.currency_asked
        FROM mart.offer_latest AS latest
        WHERE latest.currency IS NOT NULL
    ) AS offer
),

-- The currency of the reference market to compare with: the same one where available, else one that the market itself
-- was answered in, which gives the supplier's own rate.
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
    INNER JOIN mart.reference_market AS chosen ON chosen.reference_market = there.market
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

-- Materialized: otherwise DuckDB first pairs every market with every other one, which makes many times as many rows.
reference AS MATERIALIZED (
    SELECT comparable.*
    FROM comparable
    WHERE comparable.market = (SELECT chosen.reference_market FROM mart.reference_market AS chosen)
),

-- The same offer of the market in the currency of the reference offer, where it was answered in both.
twin AS (
    SELECT
        comparable.match_grade,
        comparable.match_key,
        comparable.source,
        comparable.property_id,
        comparable.market,
        comparable.product_type,
        comparable.currency,
        arg_min(comparable.total, comparable.offer_key) AS total
    FROM comparable
    SEMI JOIN currency_pair
        ON
            currency_pair.source = comparable.source
            AND currency_pair.property_id = comparable.property_id
            AND currency_pair.market = comparable.market
            AND currency_pair.reference_currency = comparable.currency
            AND currency_pair.currency <> comparable.currency
    GROUP BY ALL
),

offered AS (
    SELECT
        comparable.*,
        currency_pair.reference_currency AS compared_in,
        currency_pair.reference_currency_asked AS compared_in_asked
    FROM comparable
    INNER JOIN currency_pair
        ON
            currency_pair.source = comparable.source
            AND currency_pair.property_id = comparable.property_id
            AND currency_pair.market = comparable.market
            AND currency_pair.currency = comparable.currency
            AND currency_pair.currency_asked IS NOT DISTINCT FROM comparable.currency_asked
),

paired AS (
    SELECT
        offer.* EXCLUDE (compared_in, compared_in_asked),
        reference.market AS reference_market,
        reference.offer_key AS reference_offer_key,
        reference.room_id AS reference_room_id,
        reference.board_id AS reference_board_id,
        reference.policy_key AS reference_policy_key,
        reference.currency AS reference_currency,
        reference.total AS reference_total,
        reference.cell_key AS reference_cell_key,
        reference.pre_promo_total AS reference_pre_promo_total,
        reference.promotion_key AS reference_promotion_key,
        reference.included_charges AS reference_included_charges,
        reference.seen_sweep_id AS reference_sweep_id,
        reference.seen_search_id AS reference_search_id,
        reference.seen_offer_no AS reference_offer_no,
        exchange.rate AS reference_rate,
        exchange.rate_date,
        unit.minor_unit,
        mart.currency_basis(offer.currency, reference.currency, twin.total) AS currency_basis,
        CASE currency_basis
            WHEN 'supplier_rate' THEN offer.total::DOUBLE / twin.total::DOUBLE
            WHEN 'reference_rate' THEN exchange.rate
        END AS rate,
        CASE currency_basis
            WHEN 'same' THEN reference.total
            WHEN 'supplier_rate' THEN mart.converted(reference.total, offer.total, twin.total, unit.minor_unit)
            ELSE mart.converted(reference.total, exchange.to_rate, exchange.from_rate, unit.minor_unit)
        END AS reference_converted
    FROM offered AS offer
    INNER JOIN reference
        ON
            reference.match_grade = offer.match_grade
            AND reference.match_key = offer.match_key
            AND reference.property_id = offer.property_id
            AND reference.product_type = offer.product_type
            AND reference.currency = offer.compared_in
            AND reference.currency_asked IS NOT DISTINCT FROM offer.compared_in_asked
    LEFT JOIN twin
        ON
            twin.match_grade = offer.match_grade
            AND twin.match_key = offer.match_key
            AND twin.source = offer.source
            AND twin.property_id = offer.property_id
            AND twin.market = offer.market
            AND twin.product_type = offer.product_type
            AND twin.currency = CASE WHEN reference.currency <> offer.currency THEN reference.currency END
    LEFT JOIN mart.cross_rate AS exchange
        ON
            exchange.sweep_id = offer.seen_sweep_id
            AND exchange.to_currency = offer.currency
            AND exchange.from_currency = reference.currency
    LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
),

judged AS (
    SELECT
        paired.* EXCLUDE (minor_unit, match_key),
        mart.tolerance(
            paired.reference_converted,
            mart.tolerance_of(paired.currency_basis, analysis.tolerance_pct, analysis.reference_rate_pct),
            paired.minor_unit
        ) AS tolerance,
        (paired.total - paired.reference_converted)::DECIMAL(18, 4) AS gap,
        100 * gap::DOUBLE / paired.reference_converted::DOUBLE AS gap_pct,
        CASE
            WHEN gap < -tolerance THEN 'win'
            WHEN gap <= tolerance THEN 'meet'
            ELSE 'lose'
        END AS verdict,
        analysis.medium_pct,
        analysis.high_pct
    FROM paired
    CROSS JOIN ref.analysis AS analysis
    WHERE paired.reference_converted > 0
),

-- How long pairs have been losing: exact ones by their two offers, others by the two groups that they represent.
losing AS (
    SELECT
        episode.property_id,
        hash(
            'exact', episode.source, episode.currency_basis, episode.offer_key, episode.reference_offer_key
        ) AS pair_key,
        episode.snapshots,
        episode.began_at
    FROM state.parity_open AS episode

    UNION ALL

    SELECT
        cheapest.property_id,
        hash(
            cheapest.match_grade, cheapest.source, cheapest.currency_basis, cheapest.cell_key,
            cheapest.reference_cell_key, cheapest.room_no, cheapest.board_family, cheapest.currency,
            cheapest.reference_currency
        ) AS pair_key,
        cheapest.snapshots,
        cheapest.began_at
    FROM state.parity_group_open AS cheapest
)

SELECT
    judged.* EXCLUDE (medium_pct, high_pct),
    CASE
        WHEN judged.verdict <> 'meet' THEN mart.severity(judged.gap_pct, judged.medium_pct, judged.high_pct)
    END AS severity,
    losing.snapshots AS losing_snapshots,
    losing.began_at AS losing_since
FROM judged
LEFT JOIN losing
    ON
        losing.property_id = judged.property_id
        AND losing.pair_key = CASE
            WHEN judged.match_grade = 'exact'
                THEN
                    hash(
                        judged.match_grade, judged.source, judged.currency_basis, judged.offer_key,
                        judged.reference_offer_key
                    )
            ELSE
                hash(
                    judged.match_grade, judged.source, judged.currency_basis, judged.cell_key,
                    judged.reference_cell_key, judged.room_no,
                    CASE judged.match_grade WHEN 'board_family' THEN judged.board_family ELSE '' END,
                    judged.currency, judged.reference_currency
                )
        END
