-- Logarithmic move of prices that rise on different nights; NULL: half of them or fewer rose, which is no move of all.
-- risen: Sum of their mean changes.
-- share: Share of them that rose, net of those that fell; above 1: they rose more than once.
CREATE OR REPLACE MACRO mart.explained_rise(risen, share) AS (
    CASE WHEN share > 0.5 THEN risen / least(share, 1) END
)
