-- One row per open flag about a disparity, of the total or with fees, whose price was put right.
-- Prices that were apart and meet, or have crossed, are corrected, whatever became of other markets: these only showed
-- which deviated. But if the price that the finding is about has not changed, the other one moved: then all must be on
-- sale. While the reference market does not sell, a price is corrected beside those that met it.
WITH own_pair AS (
    SELECT
        of_flag.flag_id,
        of_flag.is_met OR (of_flag.currency_basis = 'same' AND of_flag.side_found = -1) AS is_corrected,
        own.valid_from > of_flag.last_flagged_at AS is_changed
    FROM night.disparity_unconfirmed AS of_flag
    LEFT JOIN state.offer_open AS own
        ON
            own.source = of_flag.source
            AND own.property_id = of_flag.property_id
            AND own.offer_key
            = CASE WHEN of_flag.flag_market = of_flag.market THEN of_flag.offer_key ELSE of_flag.reference_offer_key END
    WHERE of_flag.flag_market IN (of_flag.market, of_flag.reference_market)
)

SELECT own_pair.flag_id
FROM own_pair
LEFT JOIN night.flag_answered AS answered ON answered.flag_id = own_pair.flag_id
GROUP BY own_pair.flag_id
HAVING
    bool_and(own_pair.is_corrected)
    AND bool_or(own_pair.is_changed OR answered.is_all_on_sale)

UNION

SELECT corrected.flag_id
FROM night.flag_corrected AS corrected
ANTI JOIN own_pair ON own_pair.flag_id = corrected.flag_id
WHERE corrected.is_changed

UNION

SELECT with_fees.flag_id
FROM night.all_in_gap_unconfirmed AS with_fees
LEFT JOIN night.flag_answered AS answered ON answered.flag_id = with_fees.flag_id
GROUP BY with_fees.flag_id
HAVING
    bool_and(with_fees.is_met OR with_fees.side_found = -1)
    AND bool_or(with_fees.is_changed OR answered.is_all_on_sale)
