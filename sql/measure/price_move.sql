-- One row per market and lead time: how prices moved since the last published night.
-- price_changed_share: critical low rare: cells with another lowest price than when last published
-- largest_move: warning high level: factor that one cell in a thousand moved further than
SELECT
    move.market,
    move.lead,
    (count(*) FILTER (WHERE move.log_move <> 0) + 0.5) / (count(*) + 0.5) AS price_changed_share,
    count(*) AS price_changed_share__of,
    exp(quantile_cont(abs(move.log_move), 0.999)) AS largest_move,
    count(*) AS largest_move__of
FROM audit.price_move AS move
GROUP BY move.market, move.lead
