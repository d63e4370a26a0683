-- One row per cell whose lowest price moved further since the last published night than its lead time makes plausible.
-- What is plausible follows from earlier nights, by market and lead time; until there are enough, nothing is flagged.
SELECT
    move.market,
    move.property_id,
    move.search_id,
    NULL::INTEGER AS offer_no,
    format('from {:,.2f} to {:,.2f} {}', move.total_before::DOUBLE, move.total::DOUBLE, move.currency) AS reason
FROM audit.price_move AS move
INNER JOIN audit.plausible_move AS plausible
    ON
        plausible.market = move.market
        AND plausible.lead = move.lead
WHERE abs(move.log_move) > plausible.largest
