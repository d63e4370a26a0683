-- One row per source and offer key that was on sale when its cell was last answered.
-- An answer that omits an offer but has an unreadable part leaves open whether the offer is on sale; so does an answer
-- in another currency where its own is no longer requested, a sweep that does not request the property in the market,
-- and one that does not request the offer's stay if it was last seen more than unrequested_days ago. After
-- unobserved_nights of these (both in ref.analysis), the offer is left out here; its history stays open.
-- lead_days: Days from the last sweep that saw the offer to check-in.
-- total_per_night: total / nights, in currency.
-- board_family: Family of the board basis; unknown ids are `other`.
SELECT
    offer.* EXCLUDE (is_offered, longest_unseen_days),
    date_diff('day', mart.utc(offer.last_seen_at)::DATE, offer.check_in) AS lead_days,
    (offer.total / offer.nights)::DECIMAL(18, 4) AS total_per_night,
    coalesce(board.family, 'other') AS board_family
FROM state.offer_open AS offer
LEFT JOIN ref.board_basis AS board ON board.board_id = offer.board_id
WHERE
    offer.is_offered
    AND mart.is_on_sale(
        offer.doubted_since,
        (SELECT max(sweep.started_at) FROM mart.sweep AS sweep),
        (SELECT analysis.unobserved_nights FROM ref.analysis AS analysis)
    )
