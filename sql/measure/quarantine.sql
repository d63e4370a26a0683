-- One row per offer that breaks a rule and cannot be used, as a row of `reject`.
-- Penalties and promotions without an offer are rows of their own kind: one row for each missing offer.
SELECT
    sweep.sweep_id,
    violation.search_id,
    1000000 + violation.offer_no AS reject_no,
    any_value(violation.market) AS market,
    any_value(violation.property_id) AS property_id,
    CASE WHEN count(offer.offer_no) > 0 THEN 'offer' ELSE min(violation.part) END AS part,
    'offer ' || violation.offer_no AS path,
    left(string_agg(violation.reason, '; ' ORDER BY violation.rule), 300) AS reason,
    any_value(
        concat_ws(
            ' ',
            'room_id', offer.room_id, 'board_id', offer.board_id, 'total', offer.total,
            'pre_promo_total', offer.pre_promo_total, 'currency', left(offer.currency, 40)
        )
    ) AS sample,
    any_value(search.raw_address) AS raw_address,
    string_agg(violation.rule, ',' ORDER BY violation.rule) AS rule,
    violation.offer_no
FROM audit.violation AS violation
CROSS JOIN audit.sweep AS sweep
LEFT JOIN sweep_files.offer AS offer
    ON
        offer.search_id = violation.search_id
        AND offer.offer_no = violation.offer_no
LEFT JOIN sweep_files.search AS search ON search.search_id = violation.search_id
GROUP BY sweep.sweep_id, violation.search_id, violation.offer_no
