-- One row per match grade, source and offer whose price differs from the reference market's: the parts of the gap.
-- policy + board + tax_and_fee + promotion + fx + residual = gap, to the minor unit. The path from the reference offer
-- to the offer changes one thing at a time, in this order: the policy, then the board, both at the prices of the
-- reference market in the same cell and room; then included taxes and fees, then promotions, as both answers in
-- reference_currency state them; then the currency, at the market's own price in reference_currency. If the market was
-- not requested in reference_currency, charges and promotion are those in currency, and these two parts include the
-- supplier's exchange rate. A part that no answer states is NULL, not 0: it is in the residual, as is the difference
-- between two rooms (grades below exact).
-- Amounts are in currency, at the reference rate of the day of the sweep; > 0: the part makes the market dearer. fx is
-- therefore part of the gap here. mart.market_parity excludes it from pairs with a known supplier rate, and decides
-- which pairs do not meet.
-- verdict: As in mart.market_parity; if fx outweighs the price difference, gap has the opposite sign.
-- policy: Part due to different cancellation penalties, in currency; NULL: not sold in that room and board there.
-- board: Part due to a different board, in currency; NULL: not sold in that room there, or policy is unknown.
-- tax_and_fee: Part due to included charges, in currency; NULL: not stated, as in every list answer.
-- promotion: Part due to promotions (mart.taken_off), in currency; NULL: one is named without a price before it.
-- fx: Part due to the supplier's exchange rate, in currency; NULL: the offer was not also seen in reference_currency.
-- residual: Rest of the gap, in currency: unknown parts, and the price difference between the markets themselves.
-- parts_known: Number of known parts, out of five.
-- rate: Units of currency per unit of reference_currency, at reference rates; NULL: the currencies are the same.
WITH at_reference_rate AS (
    SELECT
        parity.* REPLACE (
            parity.reference_rate AS rate,
            CASE
                WHEN parity.currency_basis = 'supplier_rate'
                    THEN
                        mart.converted(
                            parity.reference_total, exchange.to_rate, exchange.from_rate, unit.minor_unit
                        )
                ELSE parity.reference_converted
            END AS reference_converted
        ),
        unit.minor_unit,
        reference_unit.minor_unit AS reference_minor_unit,
        coalesce(exchange.to_rate, 1) AS to_rate,
        coalesce(exchange.from_rate, 1) AS from_rate
    FROM mart.market_parity AS parity
    LEFT JOIN mart.cross_rate AS exchange
        ON
            exchange.sweep_id = parity.seen_sweep_id
            AND exchange.to_currency = parity.currency
            AND exchange.from_currency = parity.reference_currency
    LEFT JOIN ref.currency AS unit ON unit.currency = parity.currency
    LEFT JOIN ref.currency AS reference_unit ON reference_unit.currency = parity.reference_currency
    WHERE
        -- Equal prices have no gap to split; a difference between the two rates alone belongs to report.fx_markup.
        parity.verdict <> 'meet'
        -- Without a reference rate, the supplier's part of the gap is unknown.
        AND (parity.currency = parity.reference_currency OR parity.reference_rate IS NOT NULL)
),

apart AS (
    SELECT
        known.* REPLACE (
            (known.total - known.reference_converted)::DECIMAL(18, 4) AS gap,
            100 * (known.total::DOUBLE / known.reference_converted::DOUBLE - 1) AS gap_pct
        )
    FROM at_reference_rate AS known
    WHERE known.reference_converted > 0
),

-- NOT MATERIALIZED: each step then reads only its offers and columns, not all of them.
offer AS NOT MATERIALIZED (
    SELECT
        sold.*,
        -- No promotion takes nothing off; one without a price before it takes off an unknown amount.
        CASE
            WHEN sold.pre_promo_total IS NOT NULL
                THEN mart.taken_off(sold.total, sold.pre_promo_total, unit.minor_unit)::DECIMAL(18, 4)
            WHEN sold.promotion_key = 0 THEN 0
        END AS taken_off
    FROM mart.comparable_offer AS sold
    LEFT JOIN ref.currency AS unit
        ON unit.currency = CASE WHEN sold.total <> sold.pre_promo_total THEN sold.currency END
    WHERE sold.match_grade = 'exact'
),

-- Only offers that the steps can use: all offers would take many times as long.
-- Cells in which a step is looked up: few, as pairs of the same policy and board need none. An inner join, unlike a
-- semi join, passes a filter on the property to both sides.
stepping AS (
    SELECT DISTINCT
        parity.property_id,
        parity.reference_cell_key AS cell_key
    FROM mart.market_parity AS parity
    WHERE
        parity.verdict <> 'meet'
        AND (parity.policy_key <> parity.reference_policy_key OR parity.board_id <> parity.reference_board_id)
),

offer_there AS (
    SELECT offer.*
    FROM offer
    INNER JOIN stepping ON stepping.property_id = offer.property_id AND stepping.cell_key = offer.cell_key
    WHERE offer.market = (SELECT chosen.reference_market FROM mart.reference_market AS chosen)
),

several AS (
    SELECT
        latest.source,
        latest.property_id,
        latest.market
    FROM mart.offer_latest AS latest
    GROUP BY latest.source, latest.property_id, latest.market
    HAVING min(latest.currency) < max(latest.currency)
),

-- A market requested twice in one currency, by name and by default, is the same step: the lower key represents it.
offer_in_several AS (
    SELECT offer.*
    FROM offer
    SEMI JOIN several
        ON
            several.source = offer.source
            AND several.property_id = offer.property_id
            AND several.market = offer.market
    QUALIFY
        row_number() OVER (
            PARTITION BY
                offer.source, offer.property_id, offer.market, offer.product_type, offer.check_in, offer.nights,
                offer.party, offer.currency, offer.room_no, offer.seen_sweep_id, offer.room_id, offer.board_id,
                offer.policy_key
            ORDER BY offer.offer_key
        ) = 1
),

walked AS (
    SELECT
        apart.*,
        -- Charges in the other currency already include the supplier's rate, which is fx.
        CASE
            WHEN currency_step.offer_key IS NULL THEN apart.included_charges
            ELSE mart.converted(currency_step.included_charges, apart.to_rate, apart.from_rate, apart.minor_unit)
        END AS charges_here,
        CASE
            WHEN currency_step.offer_key IS NOT NULL
                THEN mart.converted(currency_step.taken_off, apart.to_rate, apart.from_rate, apart.minor_unit)
            WHEN apart.pre_promo_total IS NOT NULL
                THEN mart.taken_off(apart.total, apart.pre_promo_total, apart.minor_unit)::DECIMAL(18, 4)
            WHEN apart.promotion_key = 0 THEN 0
        END AS taken_off_here,
        CASE
            WHEN apart.policy_key = apart.reference_policy_key THEN apart.reference_converted
            ELSE mart.converted(policy_step.total, apart.to_rate, apart.from_rate, apart.minor_unit)
        END AS after_policy,
        CASE
            WHEN apart.board_id = apart.reference_board_id THEN after_policy
            WHEN after_policy IS NOT NULL
                THEN mart.converted(board_step.total, apart.to_rate, apart.from_rate, apart.minor_unit)
        END AS after_board,
        CASE
            WHEN apart.currency = apart.reference_currency THEN apart.total
            ELSE mart.converted(currency_step.total, apart.to_rate, apart.from_rate, apart.minor_unit)
        END AS before_fx,
        -- Charges and promotions are compared with the last offer found on the path.
        CASE
            WHEN after_board IS NOT NULL AND board_step.offer_key IS NOT NULL
                THEN board_step.included_charges
            WHEN policy_step.offer_key IS NOT NULL THEN policy_step.included_charges
            ELSE apart.reference_included_charges
        END AS charges_there,
        CASE
            WHEN after_board IS NOT NULL AND board_step.offer_key IS NOT NULL THEN board_step.taken_off
            WHEN policy_step.offer_key IS NOT NULL THEN policy_step.taken_off
            WHEN apart.reference_pre_promo_total IS NOT NULL
                THEN
                    mart.taken_off(
                        apart.reference_total, apart.reference_pre_promo_total, apart.reference_minor_unit
                    )::DECIMAL(18, 4)
            WHEN apart.reference_promotion_key = 0 THEN 0
        END AS taken_off_there
    FROM apart
    -- NULL is not a step. A condition on one side alone would make DuckDB 1.5 compare every row with every other one.
    LEFT JOIN offer_there AS policy_step
        ON
            policy_step.source = apart.source
            AND policy_step.property_id = apart.property_id
            AND policy_step.cell_key = apart.reference_cell_key
            AND policy_step.currency = apart.reference_currency
            AND policy_step.room_no = apart.room_no
            AND policy_step.seen_sweep_id = apart.seen_sweep_id
            AND policy_step.room_id = apart.reference_room_id
            AND policy_step.board_id = apart.reference_board_id
            AND policy_step.policy_key
            = CASE WHEN apart.policy_key <> apart.reference_policy_key THEN apart.policy_key END
    LEFT JOIN offer_there AS board_step
        ON
            board_step.source = apart.source
            AND board_step.property_id = apart.property_id
            AND board_step.cell_key = apart.reference_cell_key
            AND board_step.currency = apart.reference_currency
            AND board_step.room_no = apart.room_no
            AND board_step.seen_sweep_id = apart.seen_sweep_id
            AND board_step.room_id = apart.reference_room_id
            AND board_step.board_id = CASE WHEN apart.board_id <> apart.reference_board_id THEN apart.board_id END
            AND board_step.policy_key = apart.policy_key
    LEFT JOIN offer_in_several AS currency_step
        ON
            currency_step.source = apart.source
            AND currency_step.property_id = apart.property_id
            AND currency_step.market = apart.market
            AND currency_step.product_type = apart.product_type
            AND currency_step.check_in = apart.check_in
            AND currency_step.nights = apart.nights
            AND currency_step.party = apart.party
            AND currency_step.currency
            = CASE WHEN apart.currency <> apart.reference_currency THEN apart.reference_currency END
            AND currency_step.room_no = apart.room_no
            AND currency_step.seen_sweep_id = apart.seen_sweep_id
            AND currency_step.room_id = apart.room_id
            AND currency_step.board_id = apart.board_id
            AND currency_step.policy_key = apart.policy_key
),

parted AS (
    SELECT
        walked.*,
        (walked.after_policy - walked.reference_converted)::DECIMAL(18, 4) AS policy,
        (walked.after_board - walked.after_policy)::DECIMAL(18, 4) AS board,
        (
            walked.charges_here
            - mart.converted(walked.charges_there, walked.to_rate, walked.from_rate, walked.minor_unit)
        )::DECIMAL(18, 4) AS tax_and_fee,
        (
            mart.converted(walked.taken_off_there, walked.to_rate, walked.from_rate, walked.minor_unit)
            - walked.taken_off_here
        )::DECIMAL(18, 4) AS promotion,
        (walked.total - walked.before_fx)::DECIMAL(18, 4) AS fx
    FROM walked
)

SELECT
    parted.match_grade,
    parted.source,
    parted.offer_key,
    parted.reference_offer_key,
    parted.property_id,
    parted.market,
    parted.reference_market,
    parted.product_type,
    parted.check_in,
    parted.nights,
    parted.party,
    parted.room_id,
    parted.board_id,
    parted.policy_key,
    parted.currency,
    parted.reference_currency,
    parted.total,
    parted.reference_total,
    parted.reference_converted,
    parted.verdict,
    parted.gap,
    parted.gap_pct,
    parted.policy,
    parted.board,
    parted.tax_and_fee,
    parted.promotion,
    parted.fx,
    (
        parted.gap - coalesce(parted.policy, 0) - coalesce(parted.board, 0) - coalesce(parted.tax_and_fee, 0)
        - coalesce(parted.promotion, 0) - coalesce(parted.fx, 0)
    )::DECIMAL(18, 4) AS residual,
    (
        (parted.policy IS NOT NULL)::INTEGER + (parted.board IS NOT NULL)::INTEGER
        + (parted.tax_and_fee IS NOT NULL)::INTEGER + (parted.promotion IS NOT NULL)::INTEGER
        + (parted.fx IS NOT NULL)::INTEGER
    ) AS parts_known,
    parted.rate,
    parted.rate_date
FROM parted
