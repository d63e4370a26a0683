-- Logarithmic rise of a market whose prices rise on different nights; NULL: no more than half of them rose.
-- risen: Sum of their mean changes.
-- share: Share of them that rose, net of those that fell; above 1: they rose more than once.
CREATE OR REPLACE MACRO mart.explained_rise(risen, share) AS (
    CASE WHEN share > 0.5 THEN risen / least(share, 1) END
)
