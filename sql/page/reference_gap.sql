-- One row if the reference market has no offers tonight, or has them again tonight.
-- reference_market: The reference market.
-- is_set: TRUE: chosen by setting; FALSE: another market takes its place after reference_gone_days.
-- is_back: TRUE: it has offers again tonight, after nights without.
-- sold_date: UTC date of the last sweep before that found an offer there; NULL: none has.
-- since_date: UTC date of the first sweep that was answered there without an offer.
-- replaced_date: UTC date from which another market takes its place; NULL: none does, or it is back.
WITH asked AS (
    SELECT
        count_of.sweep_id,
        sweep.started_at,
        sum(count_of.offered) > 0 AS is_selling
    FROM state.cell_count AS count_of
    INNER JOIN mart.sweep AS sweep ON sweep.sweep_id = count_of.sweep_id
    SEMI JOIN mart.reference_market AS chosen ON chosen.reference_market = count_of.market
    GROUP BY count_of.sweep_id, sweep.started_at
    HAVING sum(count_of.planned) > sum(count_of.rejected + count_of.failed + count_of.not_swept)
),

tonight AS (
    SELECT asked.*
    FROM asked
    WHERE asked.sweep_id = (SELECT max_by(sweep.sweep_id, sweep.started_at) FROM mart.sweep AS sweep)
),

before AS (
    SELECT max(asked.started_at) FILTER (WHERE asked.is_selling) AS sold_at
    FROM asked
    ANTI JOIN tonight ON tonight.sweep_id = asked.sweep_id
),

since AS (
    SELECT min(asked.started_at) AS silent_at
    FROM asked
    CROSS JOIN before
    WHERE
        NOT asked.is_selling
        AND coalesce(asked.started_at > before.sold_at, TRUE)
)

SELECT
    chosen.reference_market,
    chosen.is_set,
    tonight.is_selling AS is_back,
    mart.utc(before.sold_at)::DATE AS sold_date,
    mart.utc(since.silent_at)::DATE AS since_date,
    CASE
        WHEN NOT chosen.is_set AND NOT tonight.is_selling
            THEN mart.utc(choice.last_offered_at + to_days(analysis.reference_gone_days))::DATE
    END AS replaced_date
FROM tonight
CROSS JOIN before
CROSS JOIN since
CROSS JOIN mart.reference_market AS chosen
CROSS JOIN ref.analysis AS analysis
LEFT JOIN state.reference_choice AS choice ON choice.market = chosen.reference_market
WHERE since.silent_at IS NOT NULL
