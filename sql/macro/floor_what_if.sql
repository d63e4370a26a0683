-- Hotel-only offers that a mark-up on total, in percent, would price below their floor: works for any mark-up.
CREATE OR REPLACE MACRO mart.floor_what_if(markup_pct) AS TABLE (
    SELECT
        headroom.*,
        round(headroom.total::DOUBLE * (1 + markup_pct / 100), 4)::DECIMAL(18, 4) AS price,
        (headroom.floor - price)::DECIMAL(18, 4) AS below_floor,
        100 * below_floor::DOUBLE / headroom.floor::DOUBLE AS below_floor_pct
    FROM mart.floor_headroom AS headroom
    CROSS JOIN ref.analysis AS analysis
    LEFT JOIN ref.currency AS unit ON unit.currency = headroom.currency
    WHERE
        headroom.floor - headroom.total * (1 + markup_pct / 100)
        > mart.tolerance(headroom.floor, analysis.tolerance_pct, unit.minor_unit)
)
