-- Cost of cancelling over time: one row per offer of a sweep and stretch of time in which it costs the same.
-- Windows are counted from each property's check-in time, as in mart.cancellation, or, if `check_in_hour` is given,
-- from that hour (UTC) of the check-in day for all properties; exact dates win over windows. If nothing is refunded,
-- cancelling is never free: where the terms come to nothing, what it costs is undetermined.
CREATE OR REPLACE MACRO mart.penalty_step(wanted_sweep_id, check_in_hour := NULL) AS TABLE (
    WITH offer AS (
        SELECT
            stored.sweep_id,
            stored.search_id,
            stored.offer_no,
            stored.property_id,
            stored.currency,
            stored.total,
            stored.nights,
            coalesce(
                stored.check_in::TIMESTAMP AT TIME ZONE 'UTC' + to_hours(check_in_hour),
                mart.check_in_at(
                    stored.check_in,
                    arrival.check_in_time,
                    arrival.time_zone,
                    analysis.check_in_hour,
                    analysis.check_in_time_zone
                )
            ) AS check_in_at
        FROM lake.offer AS stored
        LEFT JOIN mart.property_check_in AS arrival ON arrival.property_id = stored.property_id
        CROSS JOIN ref.analysis AS analysis
        WHERE stored.sweep_id = wanted_sweep_id
    ),

    stated AS (
        SELECT
            penalty.search_id,
            penalty.offer_no,
            penalty.penalty_no,
            penalty.is_refundable,
            mart.penalty_cost(
                offer.total,
                offer.nights,
                penalty.amount,
                penalty.penalty_pct,
                penalty.penalty_nights,
                penalty.is_refundable
            ) AS cost,
            mart.penalty_span(penalty.start_at, penalty.end_at, penalty.window_hours, offer.check_in_at) AS span,
            span['begins_at'] AS begins_at,
            span['ends_at'] AS ends_at
        FROM lake.penalty AS penalty
        INNER JOIN offer
            ON
                offer.sweep_id = penalty.sweep_id
                AND offer.search_id = penalty.search_id
                AND offer.offer_no = penalty.offer_no
        WHERE penalty.sweep_id = wanted_sweep_id
    ),

    kept AS (
        SELECT
            search_id,
            offer_no
        FROM stated
        GROUP BY search_id, offer_no
        HAVING bool_or(is_refundable) IS FALSE
    ),

    moment AS (
        SELECT DISTINCT
            search_id,
            offer_no,
            unnest(['-infinity'::TIMESTAMPTZ, begins_at, coalesce(ends_at, '-infinity'::TIMESTAMPTZ)]) AS moment_at
        FROM stated
    ),

    -- The largest penalty counts; an unknown one wins, as it may be larger still.
    counting AS (
        SELECT
            moment.search_id,
            moment.offer_no,
            moment.moment_at,
            first(
                stated.penalty_no ORDER BY stated.cost['amount'] DESC NULLS FIRST, stated.penalty_no ASC
            ) AS penalty_no,
            first(stated.cost ORDER BY stated.cost['amount'] DESC NULLS FIRST, stated.penalty_no ASC) AS cost
        FROM moment
        LEFT JOIN stated
            ON
                stated.search_id = moment.search_id
                AND stated.offer_no = moment.offer_no
                AND stated.begins_at <= moment.moment_at
                AND (stated.ends_at IS NULL OR stated.ends_at > moment.moment_at)
        WHERE moment.moment_at < 'infinity'::TIMESTAMPTZ
        GROUP BY moment.search_id, moment.offer_no, moment.moment_at
    ),

    costing AS (
        SELECT
            counting.search_id,
            counting.offer_no,
            counting.moment_at,
            counting.penalty_no,
            kept.offer_no IS NOT NULL AND (counting.penalty_no IS NULL OR counting.cost['amount'] = 0) AS is_unknown,
            CASE
                WHEN is_unknown THEN NULL
                WHEN counting.penalty_no IS NULL THEN 0::DECIMAL(18, 4)
                ELSE counting.cost['amount']
            END AS amount,
            CASE
                WHEN is_unknown THEN 'undetermined'
                WHEN counting.penalty_no IS NULL THEN 'free'
                ELSE counting.cost['rule']
            END AS rule,
            row(counting.penalty_no, amount, rule) AS state
        FROM counting
        LEFT JOIN kept ON kept.search_id = counting.search_id AND kept.offer_no = counting.offer_no
    ),

    step AS (
        SELECT *
        FROM costing
        QUALIFY
            row_number() OVER (PARTITION BY search_id, offer_no ORDER BY moment_at) = 1
            OR lag(state) OVER (PARTITION BY search_id, offer_no ORDER BY moment_at) IS DISTINCT FROM state
    )

    SELECT
        offer.sweep_id,
        offer.search_id,
        offer.offer_no,
        offer.property_id,
        (row_number() OVER in_time - 1)::INTEGER AS step_no,
        nullif(step.moment_at, '-infinity'::TIMESTAMPTZ) AS from_at,
        lead(step.moment_at) OVER in_time AS until_at,
        date_diff('minute', nullif(step.moment_at, '-infinity'::TIMESTAMPTZ), offer.check_in_at) / 60.0 AS from_hours,
        step.amount,
        offer.currency,
        coalesce(step.rule, 'not_stated') AS rule,
        step.penalty_no
    FROM offer
    LEFT JOIN step ON step.search_id = offer.search_id AND step.offer_no = offer.offer_no
    WINDOW in_time AS (PARTITION BY offer.search_id, offer.offer_no ORDER BY step.moment_at)
)
