-- Whether a rule's sizes above and below 0 differ in meaning, as rules.toml says.
-- Written by `make sql-readme`.
CREATE OR REPLACE MACRO mart.is_signed(rule) AS (
    rule IN (
        'market_disparity',
        'all_in_gap',
        'fx_markup',
        'total_above_reference',
        'penalty_amount_off_formula'
    )
)
