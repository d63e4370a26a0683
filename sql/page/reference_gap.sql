-- One row if the reference market has no offers tonight or has them again, is rejected, or is not requested.
-- reference_market: The reference market.
-- is_set: TRUE: chosen by setting; FALSE: another market takes its place after reference_gone_days.
-- is_back: TRUE: it has offers again tonight, after nights without.
-- reason: `no_offers`; `rejected`: the supplier rejects its requests; `not_swept`: the sweep ended before them;
-- `not_requested`: not since unobserved_nights. Of these three, only if another market sells.
-- sold_date: UTC date of the last sweep before that found an offer there; NULL: none has.
-- since_date: UTC date of the first sweep that was answered there without an offer, or not answered there.
-- replaced_date: UTC date from which another market takes its place; NULL: none does, it is back, or was not swept.
WITH planned AS (
    SELECT
        count_of.sweep_id,
        sweep.started_at,
        sweep.snapshot_date,
        sum(count_of.offered) > 0 AS is_selling,
        sum(count_of.planned) > sum(count_of.rejected + count_of.failed + count_of.not_swept) AS is_answered,
        sum(count_of.rejected) > 0 AS is_rejected,
        sum(count_of.not_swept) > 0 AS is_cut_off
    FROM state.cell_count AS count_of
    INNER JOIN mart.sweep AS sweep ON sweep.sweep_id = count_of.sweep_id
    SEMI JOIN mart.reference_market AS chosen ON chosen.reference_market = count_of.market
    GROUP BY count_of.sweep_id, sweep.started_at, sweep.snapshot_date
),

asked AS (
    SELECT planned.*
    FROM planned
    WHERE planned.is_answered
),

latest AS (
    SELECT
        max_by(sweep.sweep_id, sweep.started_at) AS sweep_id,
        max(sweep.snapshot_date) AS snapshot_date
    FROM mart.sweep AS sweep
),

tonight AS (
    SELECT asked.*
    FROM asked
    SEMI JOIN latest ON latest.sweep_id = asked.sweep_id
),

before AS (
    SELECT max(asked.started_at) FILTER (WHERE asked.is_selling) AS sold_at
    FROM asked
    ANTI JOIN tonight ON tonight.sweep_id = asked.sweep_id
),

silent AS (
    SELECT min(asked.started_at) AS since_at
    FROM asked
    CROSS JOIN before
    WHERE
        NOT asked.is_selling
        AND coalesce(asked.started_at > before.sold_at, TRUE)
),

-- Without offers in another market, there is nothing to compare. Markets may be swept by turns: one sweep without it
-- does not show that it has left the spec.
unanswered AS (
    SELECT
        CASE
            WHEN here.sweep_id IS NULL THEN 'not_requested'
            WHEN here.is_rejected THEN 'rejected'
            ELSE 'not_swept'
        END AS reason,
        min(sweep.started_at) AS since_at
    FROM latest
    CROSS JOIN ref.analysis AS analysis
    CROSS JOIN (
        SELECT
            max(planned.snapshot_date) AS planned_date,
            max(planned.started_at) FILTER (WHERE planned.is_answered) AS answered_at
        FROM planned
    ) AS last_planned
    LEFT JOIN planned AS here ON here.sweep_id = latest.sweep_id
    INNER JOIN mart.sweep AS sweep ON coalesce(sweep.started_at > last_planned.answered_at, TRUE)
    SEMI JOIN state.cell_count AS count_of ON count_of.sweep_id = latest.sweep_id AND count_of.offered > 0
    WHERE
        CASE
            WHEN here.sweep_id IS NULL
                THEN coalesce(latest.snapshot_date - last_planned.planned_date > analysis.unobserved_nights, TRUE)
            ELSE (here.is_rejected OR here.is_cut_off) AND NOT here.is_answered
        END
    GROUP BY here.sweep_id, here.is_rejected
),

gap AS (
    SELECT
        tonight.is_selling AS is_back,
        'no_offers' AS reason,
        silent.since_at
    FROM tonight
    CROSS JOIN silent

    UNION ALL

    SELECT
        FALSE AS is_back,
        unanswered.reason,
        unanswered.since_at
    FROM unanswered
)

SELECT
    chosen.reference_market,
    chosen.is_set,
    gap.is_back,
    mart.utc(before.sold_at)::DATE AS sold_date,
    mart.utc(gap.since_at)::DATE AS since_date,
    CASE
        WHEN NOT chosen.is_set AND NOT gap.is_back AND gap.reason <> 'not_swept'
            THEN mart.utc(choice.last_offered_at + to_days(analysis.reference_gone_days))::DATE
    END AS replaced_date,
    gap.reason
FROM gap
CROSS JOIN before
CROSS JOIN mart.reference_market AS chosen
CROSS JOIN ref.analysis AS analysis
LEFT JOIN state.reference_choice AS choice ON choice.market = chosen.reference_market
WHERE
    gap.since_at IS NOT NULL
    -- NULL as long as no market is chosen, as after a first sweep that ended early.
    AND chosen.reference_market IS NOT NULL
