-- One row per offer with meals for a party of one room, compared with room only under the same policy.
-- room_only_total: Total of the cheapest room-only offer of the same room, policy, cell and sweep; NULL: none seen.
-- premium: total - room_only_total, in currency; > 0: meals cost more.
-- premium_per_guest_night: premium per guest and night, in currency.
-- premium_pct: premium in percent of room_only_total.
-- guests: Adults and children of the party.
-- Offers of detail answers that were partly unreadable are left out: a dearer product may represent the key.
WITH room_only AS (
    SELECT
        offer.source,
        offer.property_id,
        offer.cell_key,
        offer.room_id,
        offer.policy_key,
        offer.currency,
        offer.seen_sweep_id,
        min(offer.total) AS total
    FROM mart.offer_latest AS offer
    WHERE
        offer.board_family = 'room only'
        AND offer.total > 0
        AND (offer.is_whole OR offer.source = 'multi')
    GROUP BY
        offer.source,
        offer.property_id,
        offer.cell_key,
        offer.room_id,
        offer.policy_key,
        offer.currency,
        offer.seen_sweep_id
)

SELECT
    offer.source,
    offer.property_id,
    offer.offer_key,
    offer.cell_key,
    offer.market,
    offer.product_type,
    offer.check_in,
    offer.nights,
    offer.party,
    party.guests,
    offer.currency,
    offer.room_id,
    offer.board_id,
    offer.board_family,
    offer.policy_key,
    offer.seen_sweep_id,
    offer.total,
    room_only.total AS room_only_total,
    (offer.total - room_only.total)::DECIMAL(18, 4) AS premium,
    ((offer.total - room_only.total) / (offer.nights * party.guests))::DECIMAL(18, 4) AS premium_per_guest_night,
    100 * (offer.total - room_only.total)::DOUBLE / room_only.total::DOUBLE AS premium_pct
FROM mart.offer_latest AS offer
INNER JOIN mart.party AS party ON party.party = offer.party AND party.rooms = 1
LEFT JOIN room_only
    ON
        room_only.source = offer.source
        AND room_only.property_id = offer.property_id
        AND room_only.cell_key = offer.cell_key
        AND room_only.room_id = offer.room_id
        AND room_only.policy_key = offer.policy_key
        AND room_only.currency = offer.currency
        AND room_only.seen_sweep_id = offer.seen_sweep_id
WHERE
    offer.total > 0
    AND (offer.is_whole OR offer.source = 'multi')
    AND offer.board_family NOT IN ('room only', 'self catering', 'other')
