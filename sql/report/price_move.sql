-- One row per offer key on sale on both nights (the latest, and the one before that requested it) whose total differs.
-- An offer that was off sale in between and comes back at another total has no row; nor has one of a detail answer that
-- was partly unreadable on either night: a dearer product may represent the key.
-- previous_total: Previous total, in currency.
-- change_amount: total - previous_total, in currency; > 0: dearer.
-- change_pct: change_amount in percent of previous_total; > 0: dearer.
-- previous_sweep_id: Sweep that last observed the previous total.
-- previous_search_id: Search that last observed it; sweep and search lead to the raw answer.
-- previous_offer_no: Number of the offer in the answer to previous_search_id.
WITH latest AS (
    SELECT
        sweep.sweep_id,
        sweep.started_at
    FROM mart.sweep AS sweep
    ORDER BY sweep.started_at DESC
    LIMIT 1
)

SELECT
    after.source,
    after.offer_key,
    after.property_id,
    after.market,
    after.product_type,
    after.check_in,
    after.nights,
    after.party,
    after.lead_days,
    after.room_id,
    after.room_name,
    after.board_name,
    after.currency,
    before.total AS previous_total,
    after.total,
    after.total - before.total AS change_amount,
    100.0 * (after.total - before.total)::DOUBLE / before.total::DOUBLE AS change_pct,
    before.seen_sweep_id AS previous_sweep_id,
    before.seen_search_id AS previous_search_id,
    before.seen_offer_no AS previous_offer_no,
    after.seen_sweep_id,
    after.seen_search_id,
    after.seen_offer_no
FROM latest
INNER JOIN mart.offer_latest AS after
    ON
        after.valid_from = latest.started_at
        AND after.change = 'value'
INNER JOIN state.offer_closed AS before
    ON
        before.source = after.source
        AND before.property_id = after.property_id
        AND before.offer_key = after.offer_key
        AND before.valid_to = latest.started_at
WHERE
    after.total != before.total
    AND before.total > 0
    AND (after.source = 'multi' OR (after.is_whole AND before.is_whole))
