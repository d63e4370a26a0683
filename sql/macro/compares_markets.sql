-- Whether a rule's findings are differences between two markets, as rules.toml says.
-- Written by `make sql-readme`.
CREATE OR REPLACE MACRO mart.compares_markets(rule) AS (
    rule IN (
        'market_disparity',
        'all_in_gap'
    )
)
