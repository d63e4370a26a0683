-- One row per detail offer on sale: its price including everything that must be paid at the property.
-- mandatory_charges: Sum of the four named fees, as far as stated, in currency; 0: none excluded; NULL: unknown.
-- fees_stated: Number of the four named fees that are stated.
-- optional_charges: excluded_charges - mandatory_charges where > charges_rounding, else 0: optional; NULL: unknown.
-- all_in_total: total + mandatory_charges, in currency; NULL: the charges are unknown.
-- drip_ratio: excluded_charges / (total + excluded_charges); NULL: not stated.
-- mandatory_drip_ratio: mandatory_charges / all_in_total: the share that the total does not show.
-- included_ratio: included_charges / total; NULL: not stated.
-- charges_rounding: Most that rounded fees can differ from a rounded sum, in currency: a minor unit per stated fee.
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
    offer.currency,
    offer.room_stay_id,
    offer.room_id,
    offer.board_id,
    offer.policy_key,
    offer.seen_sweep_id,
    offer.seen_search_id,
    offer.seen_offer_no,
    offer.total,
    offer.included_charges,
    offer.excluded_charges,
    offer.resort_fee,
    offer.child_resort_fee,
    offer.city_taxes,
    offer.hotel_service_fee,
    (offer.resort_fee IS NOT NULL)::INTEGER + (offer.child_resort_fee IS NOT NULL)::INTEGER
    + (offer.city_taxes IS NOT NULL)::INTEGER + (offer.hotel_service_fee IS NOT NULL)::INTEGER AS fees_stated,
    CASE
        WHEN fees_stated > 0
            THEN (
                coalesce(offer.resort_fee, 0) + coalesce(offer.child_resort_fee, 0)
                + coalesce(offer.city_taxes, 0) + coalesce(offer.hotel_service_fee, 0)
            )::DECIMAL(18, 4)
        WHEN offer.excluded_charges = 0 THEN 0::DECIMAL(18, 4)
    END AS mandatory_charges,
    -- greatest() ignores NULL: an unknown amount would become 0.
    CASE
        WHEN offer.excluded_charges - mandatory_charges <= fees_stated * coalesce(unit.minor_unit, 0.01)
            THEN 0::DECIMAL(18, 4)
        ELSE (offer.excluded_charges - mandatory_charges)::DECIMAL(18, 4)
    END AS optional_charges,
    (offer.total + mandatory_charges)::DECIMAL(18, 4) AS all_in_total,
    offer.excluded_charges::DOUBLE / nullif(offer.total + offer.excluded_charges, 0)::DOUBLE AS drip_ratio,
    mandatory_charges::DOUBLE / nullif(all_in_total, 0)::DOUBLE AS mandatory_drip_ratio,
    offer.included_charges::DOUBLE / nullif(offer.total, 0)::DOUBLE AS included_ratio,
    (fees_stated * coalesce(unit.minor_unit, 0.01))::DECIMAL(18, 4) AS charges_rounding
FROM mart.offer_latest AS offer
LEFT JOIN ref.currency AS unit ON unit.currency = offer.currency
WHERE offer.source = 'detail'
