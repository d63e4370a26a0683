-- One row per open flag that ends with this sweep: its evidence was answered without the finding, or the stay began.
-- A converted disparity does not end because rates have moved: it would begin again once they are back, and be a new
-- case. It ends when prices have moved towards each other by more than rates did, or meet at all rates of eight days.
WITH evidence AS (
    SELECT
        before.flag_id,
        before.rule,
        before.market,
        before.product_type,
        before.size_pct,
        before.fx,
        before.last_flagged_at,
        before.evidence[1].sweep_id AS compared_sweep_id,
        before.evidence[1].source AS compared_source,
        list_filter(before.evidence, LAMBDA seen: seen['role'] = 'compared')[1] AS compared, -- noqa: RF02
        unnest(before.evidence) AS item
    FROM state.flag_open AS before
    ANTI JOIN night.finding AS finding ON finding.flag_id = before.flag_id
    -- A rule that could not be evaluated says nothing about its flags.
    ANTI JOIN night.failed_rule AS failed ON failed.relation = before.relation
),

-- Findings about an entire property rest on answers without an offer: any answer about it counts.
cell AS (
    SELECT
        cell.operation,
        cell.property_id,
        cell.market,
        cell.product_type,
        bool_or(cell.sweep_id = sweep.sweep_id AND cell.status IN ('offered', 'no_offer', 'absent')) AS is_seen,
        bool_and(requested.property_id IS NULL) AS is_no_longer_asked
    FROM state.cell AS cell
    CROSS JOIN night.sweep AS sweep
    LEFT JOIN mart.property_requested AS requested
        ON
            requested.property_id = cell.property_id
            AND requested.market = cell.market
    SEMI JOIN evidence
        ON
            evidence.item.property_id = cell.property_id -- noqa: RF01
            AND evidence.item.offer_key IS NULL -- noqa: RF01
    GROUP BY cell.operation, cell.property_id, cell.market, cell.product_type
),

-- Tonight's pairs of the evidence of disparities.
pair AS MATERIALIZED (
    SELECT
        parity.source,
        parity.property_id,
        parity.offer_key,
        parity.market,
        parity.currency,
        parity.total,
        parity.reference_offer_key,
        parity.reference_market,
        parity.reference_currency,
        parity.reference_total,
        parity.currency_basis,
        sign(parity.gap) AS side,
        mart.is_level(parity.verdict, parity.gap_pct, analysis.disparity_pct) AS is_met
    FROM mart.market_parity AS parity
    SEMI JOIN evidence
        ON
            evidence.rule = 'market_disparity'
            AND evidence.item.source = parity.source -- noqa: RF01
            AND evidence.item.property_id = parity.property_id -- noqa: RF01
            AND evidence.item.offer_key = parity.offer_key -- noqa: RF01
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE
        parity.match_grade = 'exact'
        AND parity.currency_basis <> 'supplier_rate'
        AND parity.seen_sweep_id = sweep.sweep_id
        AND parity.reference_sweep_id = sweep.sweep_id
),

of_flag AS (
    SELECT
        evidence.flag_id,
        evidence.market AS flag_market,
        evidence.size_pct,
        evidence.fx,
        evidence.last_flagged_at,
        evidence.compared_sweep_id,
        evidence.compared,
        pair.*,
        -- 1: the price of the flag's market is on the same side of the other one as found; -1: on the other side.
        CASE evidence.market WHEN pair.market THEN pair.side WHEN pair.reference_market THEN -pair.side END
        * sign(evidence.size_pct) AS side_found
    FROM evidence
    INNER JOIN pair
        ON
            pair.source = evidence.item.source -- noqa: RF01
            AND pair.property_id = evidence.item.property_id -- noqa: RF01
            AND pair.offer_key = evidence.item.offer_key -- noqa: RF01
    WHERE
        evidence.rule = 'market_disparity'
        -- Prices of the other source only show which deviates.
        AND pair.source = evidence.compared_source
),

-- Two prices in one currency that are still apart: with fewer markets on sale, it may be unknown which deviates, but
-- nothing was put right. The finding ends if tonight the other one of the two is found to deviate.
apart_still AS (
    SELECT of_flag.flag_id
    FROM of_flag
    ANTI JOIN (
        SELECT
            finding.flag_id,
            finding.rule,
            unnest(finding.evidence) AS item
        FROM night.finding AS finding
    ) AS another
        ON
            another.rule = 'market_disparity'
            AND another.item.source = of_flag.source -- noqa: RF01
            AND another.item.property_id = of_flag.property_id -- noqa: RF01
            AND another.item.offer_key = CASE -- noqa: RF01
                WHEN of_flag.flag_market = of_flag.reference_market THEN of_flag.reference_offer_key
                ELSE of_flag.offer_key
            END
    WHERE
        of_flag.currency_basis = 'same'
        AND NOT of_flag.is_met
        AND of_flag.side_found = 1
    GROUP BY of_flag.flag_id
),

-- Converted pairs of a flag, with the price of its market for one of the other's: tonight, and when last flagged. A
-- market that was compared with another one in its currency is still that much from it; then the reference market's
-- price must be the same, because what it was is not known.
then_and_now AS (
    SELECT
        of_flag.*,
        of_flag.flag_market = of_flag.reference_market AS is_of_reference,
        CASE
            WHEN of_flag.fx IS NULL THEN of_flag.total::DOUBLE / compared.total::DOUBLE
            WHEN is_of_reference THEN of_flag.reference_total::DOUBLE / of_flag.total::DOUBLE -- noqa: RF02
            ELSE of_flag.total::DOUBLE / of_flag.reference_total::DOUBLE
        END AS ratio,
        (1 + of_flag.size_pct / 100) * coalesce(of_flag.fx.rate::DOUBLE, 1) AS ratio_before,
        1 + (analysis.disparity_pct + analysis.tolerance_pct) / 100 AS moved_by,
        1 + (analysis.tolerance_pct + analysis.reference_rate_pct) / 100 AS allowed
    FROM of_flag
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN state.offer_open AS compared
        ON
            compared.source = of_flag.compared.source -- noqa: RF01
            AND compared.property_id = of_flag.compared.property_id -- noqa: RF01
            AND compared.offer_key = of_flag.compared.offer_key -- noqa: RF01
            AND compared.seen_sweep_id = sweep.sweep_id
    LEFT JOIN state.offer_open AS reference
        ON
            reference.source = of_flag.source
            AND reference.property_id = of_flag.property_id
            AND reference.offer_key = of_flag.reference_offer_key
    WHERE
        of_flag.currency_basis = 'reference_rate'
        AND CASE
            WHEN of_flag.fx IS NULL
                THEN of_flag.flag_market = of_flag.market AND reference.valid_from <= of_flag.last_flagged_at
            WHEN is_of_reference -- noqa: RF02
                THEN of_flag.fx.from_currency = of_flag.currency AND of_flag.fx.to_currency = of_flag.reference_currency
            ELSE
                of_flag.flag_market = of_flag.market
                AND of_flag.fx.from_currency = of_flag.reference_currency
                AND of_flag.fx.to_currency = of_flag.currency
        END
),

held AS (
    SELECT pair.flag_id
    FROM then_and_now AS pair
    CROSS JOIN night.sweep AS sweep
    INNER JOIN mart.cross_rate AS now
        ON
            now.sweep_id = sweep.sweep_id
            AND now.to_currency = CASE WHEN pair.is_of_reference THEN pair.reference_currency ELSE pair.currency END
            AND now.from_currency = CASE WHEN pair.is_of_reference THEN pair.currency ELSE pair.reference_currency END
    LEFT JOIN mart.cross_rate AS earlier
        ON
            earlier.sweep_id = pair.compared_sweep_id
            AND earlier.to_currency = pair.fx.to_currency
            AND earlier.from_currency = pair.fx.from_currency
    GROUP BY pair.flag_id
    HAVING
        bool_and(
            CASE
                WHEN pair.fx IS NULL AND pair.size_pct > 0
                    THEN
                        pair.ratio > pair.moved_by
                        AND pair.ratio * pair.moved_by >= pair.ratio_before
                WHEN pair.fx IS NULL
                    THEN
                        pair.ratio * pair.moved_by < 1
                        AND pair.ratio <= pair.ratio_before * pair.moved_by
                WHEN pair.size_pct > 0
                    THEN
                        pair.ratio > now.lowest_rate * pair.allowed
                        AND pair.ratio <= now.highest_month_rate * pair.allowed
                        AND pair.ratio * pair.moved_by
                        >= pair.ratio_before * least(coalesce(now.lowest_rate / earlier.highest_rate, 1), 1)
                ELSE
                    pair.ratio * pair.allowed < now.highest_rate
                    AND pair.ratio * pair.allowed >= now.lowest_month_rate
                    AND pair.ratio
                    <= pair.ratio_before * pair.moved_by
                    * greatest(coalesce(now.highest_rate / earlier.lowest_rate, 1), 1)
            END
        )
),

-- An offer whose stay has begun is no longer in the state.
state_of_item AS (
    SELECT
        evidence.flag_id,
        evidence.market AS flag_market,
        evidence.last_flagged_at,
        offer.market,
        offer.offer_key IS NOT NULL OR cell.property_id IS NOT NULL AS is_standing,
        coalesce(cell.is_seen, FALSE)
        OR (
            offer.seen_sweep_id = sweep.sweep_id
            -- Where a detail answer was not fully readable, the flagged product may be in the unread part.
            AND (offer.is_whole OR offer.source = 'multi')
        )
        OR NOT mart.is_on_sale(offer.doubted_since, sweep.started_at, analysis.unobserved_nights)
        OR coalesce(cell.is_no_longer_asked, FALSE) AS is_answered,
        NOT offer.is_offered
        OR (
            offer.unobserved_since IS NOT NULL
            AND NOT mart.is_on_sale(offer.doubted_since, sweep.started_at, analysis.unobserved_nights)
        ) AS is_off_sale,
        -- In doubt although no answer is missing: its cell is now requested in another currency, or its property not.
        offer.unobserved_since IS NULL
        AND (
            coalesce(cell.is_no_longer_asked, FALSE)
            OR NOT mart.is_on_sale(offer.doubted_since, sweep.started_at, analysis.unobserved_nights)
        ) AS is_replaced,
        silent.market IS NOT NULL AND NOT offer.is_offered AS is_silent,
        evidence.rule = 'market_disparity'
        AND evidence.item.role = 'reference' -- noqa: RF01
        AND offer.market <> chosen.reference_market AS is_beside_a_former_reference
    FROM evidence
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN mart.reference_market AS chosen
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN state.offer_open AS offer
        ON
            offer.source = evidence.item.source -- noqa: RF01
            AND offer.property_id = evidence.item.property_id -- noqa: RF01
            AND offer.offer_key = evidence.item.offer_key -- noqa: RF01
    LEFT JOIN night.market_silent AS silent
        ON
            silent.market = offer.market
            AND silent.operation = CASE offer.source WHEN 'multi' THEN 'multi' ELSE 'single' END
    LEFT JOIN cell
        ON
            evidence.item.offer_key IS NULL -- noqa: RF01
            AND cell.property_id = evidence.item.property_id -- noqa: RF01
            AND cell.operation = CASE evidence.item.source WHEN 'multi' THEN 'multi' ELSE 'single' END -- noqa: RF01
            AND cell.market = evidence.market
            AND cell.product_type = evidence.product_type
),

-- Prices that were apart and meet, or have crossed, are corrected, whatever became of other markets: these only showed
-- which deviated. But if the price that the finding is about has not changed, the other one moved: then all must be on
-- sale. While the reference market does not sell, a price is corrected beside those that met it.
own_pair AS (
    SELECT
        of_flag.flag_id,
        of_flag.is_met OR (of_flag.currency_basis = 'same' AND of_flag.side_found = -1) AS is_corrected,
        own.valid_from > of_flag.last_flagged_at AS is_changed
    FROM of_flag
    LEFT JOIN state.offer_open AS own
        ON
            own.source = of_flag.source
            AND own.property_id = of_flag.property_id
            AND own.offer_key
            = CASE WHEN of_flag.flag_market = of_flag.market THEN of_flag.offer_key ELSE of_flag.reference_offer_key END
    WHERE of_flag.flag_market IN (of_flag.market, of_flag.reference_market)
),

met AS (
    SELECT own_pair.flag_id
    FROM own_pair
    LEFT JOIN (
        SELECT item.flag_id
        FROM state_of_item AS item
        GROUP BY item.flag_id
        HAVING bool_and(item.is_answered AND NOT item.is_off_sale)
    ) AS all_seen ON all_seen.flag_id = own_pair.flag_id
    GROUP BY own_pair.flag_id
    HAVING
        bool_and(own_pair.is_corrected)
        AND bool_or(own_pair.is_changed OR all_seen.flag_id IS NOT NULL)

    UNION

    SELECT corrected.flag_id
    FROM night.flag_corrected AS corrected
    ANTI JOIN own_pair ON own_pair.flag_id = corrected.flag_id
    WHERE corrected.is_changed
),

-- If what a finding is about is on sale, and only a price of another market that it was compared with is not, that one
-- may be back within silent_nights.
answered AS (
    SELECT
        item.flag_id,
        count(*) FILTER (WHERE item.is_standing) AS standing,
        count(*) FILTER (WHERE item.is_answered) AS seen,
        coalesce(bool_or(item.is_off_sale), FALSE) AS is_gone,
        coalesce(bool_or(item.is_replaced), FALSE) AS is_not_asked,
        coalesce(bool_or(item.is_silent), FALSE) AS is_of_silent_market,
        coalesce(bool_or(item.is_beside_a_former_reference), FALSE) AND any_value(own_pair.flag_id) IS NULL
            AS is_reference_changed,
        is_gone -- noqa: RF02
        AND coalesce(bool_and(NOT item.is_off_sale) FILTER (WHERE item.market = item.flag_market), FALSE)
            AS is_only_compared_gone,
        is_only_compared_gone -- noqa: RF02
        AND any_value(item.last_flagged_at)
        >= any_value(sweep.started_at) - to_hours(24 * any_value(analysis.silent_nights) + 12) AS is_awaited
    FROM state_of_item AS item
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN (SELECT DISTINCT own_pair.flag_id FROM own_pair) AS own_pair ON own_pair.flag_id = item.flag_id
    GROUP BY item.flag_id
),

-- Breaches whose selling price is now too old to be judged: nothing shows that the price was put right.
outdated AS (
    SELECT before.flag_id
    FROM state.flag_open AS before
    INNER JOIN (
        SELECT
            mart.subject_key(
                'floor_breach',
                mart.price_subject(
                    source.source,
                    price.property_id,
                    price.market,
                    price.check_in,
                    price.nights,
                    price.party,
                    price.currency,
                    price.room_id,
                    price.board_id,
                    price.policy_key,
                    price.channel
                )
            ) AS subject_key,
            max(price.observed_at) AS observed_at
        FROM lake.selling_price AS price
        CROSS JOIN (VALUES ('multi'), ('detail')) AS source (source)
        SEMI JOIN evidence
            ON
                evidence.rule = 'floor_breach'
                AND evidence.item.property_id = price.property_id -- noqa: RF01
                AND evidence.item.source = source.source -- noqa: RF01
        GROUP BY subject_key -- noqa: RF02
    ) AS latest
        ON latest.subject_key = before.subject_key
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    WHERE
        before.rule = 'floor_breach'
        AND date_diff('second', latest.observed_at, sweep.started_at) / 86400.0 > analysis.price_days
)

SELECT
    before.flag_id,
    CASE
        WHEN before.check_in <= sweep.snapshot_date THEN before.check_in::TIMESTAMPTZ
        ELSE sweep.started_at
    END AS resolved_at,
    sweep.sweep_id AS resolved_sweep_id,
    CASE
        WHEN before.check_in <= sweep.snapshot_date OR answered.standing = 0 THEN 'stay_began'
        WHEN met.flag_id IS NOT NULL THEN 'value'
        WHEN answered.is_only_compared_gone THEN 'not_compared'
        WHEN answered.is_gone THEN 'gone'
        WHEN answered.is_not_asked THEN 'not_asked'
        WHEN answered.is_reference_changed THEN 'reference_changed'
        WHEN outdated.flag_id IS NOT NULL THEN 'outdated'
        ELSE 'value'
    END AS ended_by
FROM state.flag_open AS before
CROSS JOIN night.sweep AS sweep
LEFT JOIN answered ON answered.flag_id = before.flag_id
LEFT JOIN met ON met.flag_id = before.flag_id
LEFT JOIN outdated ON outdated.flag_id = before.flag_id
-- A finding that is raised again stays open, even if the stay of its earlier evidence has begun.
ANTI JOIN night.finding AS finding ON finding.flag_id = before.flag_id
LEFT JOIN held ON held.flag_id = before.flag_id
LEFT JOIN apart_still ON apart_still.flag_id = before.flag_id
WHERE
    before.check_in <= sweep.snapshot_date
    OR (
        held.flag_id IS NULL
        AND (
            met.flag_id IS NOT NULL
            OR (
                answered.seen = answered.standing
                AND NOT answered.is_of_silent_market
                AND NOT answered.is_awaited
                AND apart_still.flag_id IS NULL
            )
        )
    )
