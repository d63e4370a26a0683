-- One row per open flag that ends with this sweep: its evidence was answered without the finding, or the stay began.
WITH evidence AS (
    SELECT
        before.flag_id,
        before.rule,
        before.market,
        before.product_type,
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
        bool_or(cell.sweep_id = sweep.sweep_id AND cell.status IN ('offered', 'no_offer', 'absent')) AS is_seen
    FROM state.cell AS cell
    CROSS JOIN night.sweep AS sweep
    SEMI JOIN evidence
        ON
            evidence.item.property_id = cell.property_id -- noqa: RF01
            AND evidence.item.offer_key IS NULL -- noqa: RF01
    GROUP BY cell.operation, cell.property_id, cell.market, cell.product_type
),

-- A market without any offer for a night or two has more likely failed than sold out: no flag ends.
silent AS (
    SELECT
        counted.operation,
        counted.market
    FROM state.cell_count AS counted
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    GROUP BY counted.operation, counted.market, sweep.sweep_id, sweep.snapshot_date, analysis.silent_nights
    HAVING
        coalesce(sum(counted.offered) FILTER (WHERE counted.sweep_id = sweep.sweep_id), 0) = 0
        AND max(counted.snapshot_date) FILTER (WHERE counted.offered > 0)
        >= sweep.snapshot_date - analysis.silent_nights
),

-- Prices that were apart and meet are corrected, whatever became of other markets: these only showed which deviated.
met AS (
    SELECT evidence.flag_id
    FROM evidence
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    INNER JOIN mart.market_parity AS parity
        ON
            parity.source = evidence.item.source -- noqa: RF01
            AND parity.property_id = evidence.item.property_id -- noqa: RF01
            AND parity.offer_key = evidence.item.offer_key -- noqa: RF01
    WHERE
        evidence.rule = 'market_disparity'
        AND evidence.market IN (parity.market, parity.reference_market)
        AND parity.match_grade = 'exact'
        AND parity.currency_basis <> 'supplier_rate'
        AND parity.seen_sweep_id = sweep.sweep_id
        AND parity.reference_sweep_id = sweep.sweep_id
    GROUP BY evidence.flag_id
    HAVING bool_and(parity.verdict = 'meet' OR abs(parity.gap_pct) <= analysis.disparity_pct)
),

-- An offer whose stay has begun is no longer in the state.
answered AS (
    SELECT
        evidence.flag_id,
        count(offer.offer_key) + count(cell.property_id) AS standing,
        count(*) FILTER (
            WHERE
            cell.is_seen
            OR (
                offer.seen_sweep_id = sweep.sweep_id
                -- Where a detail answer was not fully readable, the flagged product may be in the unread part.
                AND (offer.is_whole OR offer.source = 'multi')
            )
            OR NOT mart.is_on_sale(offer.doubted_since, sweep.started_at, analysis.unobserved_nights)
        ) AS seen,
        coalesce(
            bool_or(
                NOT offer.is_offered
                OR (
                    offer.unobserved_since IS NOT NULL
                    AND NOT mart.is_on_sale(offer.doubted_since, sweep.started_at, analysis.unobserved_nights)
                )
            ),
            FALSE
        ) AS is_gone,
        -- In doubt although no answer is missing: its cell is now requested in another currency.
        coalesce(
            bool_or(
                offer.unobserved_since IS NULL
                AND NOT mart.is_on_sale(offer.doubted_since, sweep.started_at, analysis.unobserved_nights)
            ),
            FALSE
        ) AS is_not_asked,
        coalesce(bool_or(silent.market IS NOT NULL AND NOT offer.is_offered), FALSE) AS is_of_silent_market
    FROM evidence
    CROSS JOIN night.sweep AS sweep
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN state.offer_open AS offer
        ON
            offer.source = evidence.item.source -- noqa: RF01
            AND offer.property_id = evidence.item.property_id -- noqa: RF01
            AND offer.offer_key = evidence.item.offer_key -- noqa: RF01
    LEFT JOIN silent
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
    GROUP BY evidence.flag_id
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
        WHEN answered.is_gone THEN 'gone'
        WHEN answered.is_not_asked THEN 'not_asked'
        ELSE 'value'
    END AS ended_by
FROM state.flag_open AS before
CROSS JOIN night.sweep AS sweep
LEFT JOIN answered ON answered.flag_id = before.flag_id
LEFT JOIN met ON met.flag_id = before.flag_id
-- A finding that is raised again stays open, even if the stay of its earlier evidence has begun.
ANTI JOIN night.finding AS finding ON finding.flag_id = before.flag_id
WHERE
    before.check_in <= sweep.snapshot_date
    OR met.flag_id IS NOT NULL
    OR (answered.seen = answered.standing AND NOT answered.is_of_silent_market)
