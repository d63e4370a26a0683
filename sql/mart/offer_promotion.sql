-- One row per source and offer key on sale that states a price before promotions or names a promotion.
-- depth_pct: 100 x (1 - total / pre_promo_total); < 0: total is higher; NULL: no price before promotions.
-- free_nights: Number of whole nights of the stay that the depth equals, within rounding; NULL: none. An indicator.
-- Both prices are from one answer, and so in one currency, even where it is not stated.
SELECT
    offer.source,
    offer.offer_key,
    offer.cell_key,
    offer.property_id,
    offer.market,
    offer.product_type,
    offer.check_in,
    offer.nights,
    offer.party,
    offer.currency,
    offer.room_stay_id,
    offer.room_id,
    offer.board_id,
    offer.policy_key,
    offer.lead_days,
    offer.total,
    offer.pre_promo_total,
    offer.discount_pct,
    offer.floor,
    offer.promotion_key,
    named.promotion_kinds,
    named.promotion_text,
    named.names_price_promotion,
    named.promised_pct,
    mart.depth_pct(offer.total, offer.pre_promo_total) AS depth_pct,
    -- A rounded price is off by at most half a unit of money, and a rounded share by half a percent.
    CASE
        WHEN
            depth_pct > 0
            AND round(depth_pct / 100 * offer.nights) BETWEEN 1 AND offer.nights - 1
            AND abs(depth_pct - 100 * round(depth_pct / 100 * offer.nights) / offer.nights)
            <= analysis.discount_rounding * (1 + 100 / offer.pre_promo_total::DOUBLE)
            THEN round(depth_pct / 100 * offer.nights)::INTEGER
    END AS free_nights,
    offer.last_seen_at,
    offer.seen_sweep_id,
    offer.seen_search_id,
    offer.seen_offer_no
FROM mart.offer_latest AS offer
CROSS JOIN ref.analysis AS analysis
LEFT JOIN mart.promotion_named AS named ON named.promotion_key = offer.promotion_key
WHERE offer.pre_promo_total IS NOT NULL OR offer.promotion_key <> 0
