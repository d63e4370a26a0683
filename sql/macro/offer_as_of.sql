-- The offers on sale as they were known right after a published sweep.
CREATE OR REPLACE MACRO mart.offer_as_of(wanted_sweep_id) AS TABLE (
    SELECT history.*
    FROM mart.offer_history AS history
    INNER JOIN mart.sweep AS sweep ON sweep.sweep_id = wanted_sweep_id
    WHERE
        history.is_offered
        AND history.check_in > sweep.snapshot_date
        AND history.valid_from <= sweep.started_at
        AND (history.valid_to IS NULL OR history.valid_to > sweep.started_at)
        AND mart.is_on_sale(
            history.doubted_since,
            sweep.started_at,
            (SELECT analysis.unobserved_nights FROM ref.analysis AS analysis)
        )
)
