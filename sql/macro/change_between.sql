-- Logarithmic change of a market's prices between two sweeps, by what explains the larger rise of mart.market_movement.
-- earlier, later: Values of spread at the sweeps.
-- risen, changed: Differences of risen and so_far between them; NULL: unknown, and taken for no change.
CREATE OR REPLACE MACRO mart.change_between(earlier, later, risen, changed) AS (
    CASE
        WHEN mart.rise_between(earlier, later) > risen::DOUBLE + 1e-6
            THEN mart.explained_rise(later['mean'] - earlier['mean'], later['share'] - earlier['share'])
        ELSE coalesce(changed::DOUBLE, 0)
    END
)
