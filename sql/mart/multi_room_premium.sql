-- One row per room, board and policy offered to a party of several rooms, compared with booking each room alone.
-- rooms: Number of rooms of the party.
-- rooms_offered: Number of the party's rooms for which this room id, board and policy was offered with a total.
-- rooms_found: Number of the party's rooms with the same offer in a search for that room alone, in the same sweep.
-- total: Sum of the totals of all rooms, in currency; NULL: not offered for every room.
-- singles_total: Sum of the totals of the rooms requested alone, in currency; NULL: not all were seen.
-- premium: total - singles_total, in currency; > 0: booking together costs more.
-- premium_pct: premium in percent of singles_total; > 0: booking together costs more.
-- Offers of detail answers that were partly unreadable are left out: a dearer product may represent the key.
WITH room_alone AS (
    SELECT DISTINCT unnest(string_split(party.party, '+')) AS party
    FROM mart.party AS party
    WHERE party.rooms > 1
),

-- Without parties of several rooms there is nothing to look for, among all offers.
single AS (
    SELECT offer.*
    FROM mart.offer_latest AS offer
    SEMI JOIN room_alone ON room_alone.party = offer.party
),

party_offer AS (
    SELECT
        offer.source,
        offer.property_id,
        offer.cell_key,
        offer.room_id,
        offer.board_id,
        offer.policy_key,
        offer.currency,
        any_value(offer.market) AS market,
        any_value(offer.product_type) AS product_type,
        any_value(offer.check_in) AS check_in,
        any_value(offer.nights) AS nights,
        any_value(offer.party) AS party,
        any_value(offer.seen_sweep_id) AS seen_sweep_id,
        any_value(party.rooms) AS rooms,
        count(DISTINCT offer.room_stay_id) AS rooms_offered,
        count(single.total) AS rooms_found,
        CASE
            WHEN count(DISTINCT offer.room_stay_id) = any_value(party.rooms) THEN sum(offer.total)::DECIMAL(18, 4)
        END AS party_total,
        CASE
            WHEN count(single.total) = any_value(party.rooms) THEN sum(single.total)::DECIMAL(18, 4)
        END AS singles_total
    FROM mart.offer_latest AS offer
    INNER JOIN mart.party AS party ON party.party = offer.party AND party.rooms > 1
    LEFT JOIN single
        ON
            single.source = offer.source
            AND single.property_id = offer.property_id
            AND single.check_in = offer.check_in
            AND single.nights = offer.nights
            AND single.room_id = offer.room_id
            AND single.board_id = offer.board_id
            AND single.policy_key = offer.policy_key
            AND single.market = offer.market
            AND single.product_type = offer.product_type
            AND single.party = string_split(offer.party, '+')[offer.room_stay_id::BIGINT + 1]
            AND single.currency = offer.currency
            AND single.seen_sweep_id = offer.seen_sweep_id
            AND coalesce(single.currency_asked, '~') = coalesce(offer.currency_asked, '~')
            AND single.total > 0
            AND (single.is_whole OR single.source = 'multi')
    WHERE
        offer.total > 0
        -- Several rooms. The join says so, too, but would first keep all offers in memory.
        AND contains(offer.party, '+')
        AND offer.room_id IS NOT NULL
        AND (offer.is_whole OR offer.source = 'multi')
    GROUP BY
        offer.source,
        offer.property_id,
        offer.cell_key,
        offer.room_id,
        offer.board_id,
        offer.policy_key,
        offer.currency,
        offer.seen_sweep_id
)

SELECT
    party_offer.* EXCLUDE (party_total),
    party_offer.party_total AS total,
    (party_offer.party_total - party_offer.singles_total)::DECIMAL(18, 4) AS premium,
    100 * (party_offer.party_total - party_offer.singles_total)::DOUBLE
    / party_offer.singles_total::DOUBLE AS premium_pct
FROM party_offer
