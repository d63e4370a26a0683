-- One row per offer for a party of one room and a smaller party that was also requested, with its offer if seen.
-- kind: `adult`: more adults, same children; `child`: same adults, with children instead of none.
-- base_party: The smaller party that it is compared with.
-- added_guests: Number of guests of party beyond those of base_party.
-- base_total: Total for base_party, same room, board, policy and stay, in currency; NULL: not seen in the same sweep.
-- supplement: total - base_total, in currency; > 0: the larger party pays more.
-- supplement_per_guest_night: supplement per added guest and night, in currency.
-- supplement_pct: supplement in percent of base_total; > 0: the larger party pays more.
-- supplement_per_guest_pct: supplement_pct per added guest: one more adult is not mixed with two more.
-- Offers of detail answers that were partly unreadable are left out: a dearer product may represent the key.
WITH pair AS (
    SELECT
        larger.party,
        smaller.party AS base_party,
        CASE WHEN larger.children = smaller.children THEN 'adult' ELSE 'child' END AS kind,
        larger.guests - smaller.guests AS added_guests
    FROM mart.party AS larger
    INNER JOIN mart.party AS smaller
        ON
            smaller.rooms = larger.rooms
            AND (
                (smaller.child_ages = larger.child_ages AND smaller.adults < larger.adults)
                OR (smaller.adults = larger.adults AND smaller.children = 0 AND larger.children > 0)
            )
    WHERE larger.rooms = 1
)

SELECT
    offer.source,
    offer.property_id,
    offer.offer_key,
    offer.market,
    offer.product_type,
    offer.check_in,
    offer.nights,
    offer.party,
    offer.currency,
    offer.room_id,
    offer.board_id,
    offer.policy_key,
    offer.seen_sweep_id,
    offer.total,
    pair.kind,
    pair.base_party,
    pair.added_guests,
    base.total AS base_total,
    (offer.total - base.total)::DECIMAL(18, 4) AS supplement,
    ((offer.total - base.total) / (pair.added_guests * offer.nights))::DECIMAL(18, 4) AS supplement_per_guest_night,
    100 * (offer.total - base.total)::DOUBLE / base.total::DOUBLE AS supplement_pct,
    supplement_pct / pair.added_guests AS supplement_per_guest_pct
FROM mart.offer_latest AS offer
INNER JOIN pair ON pair.party = offer.party
SEMI JOIN mart.offer_latest AS asked
    ON
        asked.property_id = offer.property_id
        AND asked.check_in = offer.check_in
        AND asked.nights = offer.nights
        AND asked.market = offer.market
        AND asked.product_type = offer.product_type
        AND asked.party = pair.base_party
        -- As of the sweep that saw the offer: a cell that failed since then was on sale at that time.
        AND asked.seen_sweep_id = offer.seen_sweep_id
LEFT JOIN mart.offer_latest AS base
    ON
        base.source = offer.source
        AND base.property_id = offer.property_id
        AND base.check_in = offer.check_in
        AND base.nights = offer.nights
        AND base.room_id = offer.room_id
        AND base.board_id = offer.board_id
        AND base.policy_key = offer.policy_key
        AND base.market = offer.market
        AND base.product_type = offer.product_type
        AND base.party = pair.base_party
        AND base.currency = offer.currency
        AND base.seen_sweep_id = offer.seen_sweep_id
        AND coalesce(base.currency_asked, '~') = coalesce(offer.currency_asked, '~')
        AND base.total > 0
        AND (base.is_whole OR base.source = 'multi')
WHERE
    offer.total > 0
    AND (offer.is_whole OR offer.source = 'multi')
