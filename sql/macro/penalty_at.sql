-- Cost of cancelling at an instant: one row per offer of a sweep. Further arguments as in mart.penalty_step.
CREATE OR REPLACE MACRO mart.penalty_at(wanted_sweep_id, wanted_at, check_in_hour := NULL) AS TABLE (
    SELECT
        step.sweep_id,
        step.search_id,
        step.offer_no,
        step.property_id,
        step.amount,
        step.currency,
        step.rule,
        step.penalty_no
    FROM mart.penalty_step(wanted_sweep_id, check_in_hour := check_in_hour) AS step
    WHERE
        (step.from_at IS NULL OR step.from_at <= wanted_at)
        AND (step.until_at IS NULL OR step.until_at > wanted_at)
)
