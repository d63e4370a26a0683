-- One row per sweep, operation, market and product type: how much of what was answered was on sale.
-- Absent is not sold out, and of the codes only 1023 and 1025 say that nothing is left; 1026 can only be answered to
-- several rooms.
-- no_offer: Cells answered without an offer, whatever the code.
-- answered: Cells that were answered: offered, without an offer, or absent.
-- answered_rooms: Of those answered, cells that asked for several rooms.
-- availability: offered / answered; NULL: nothing was answered.
-- availability_of_present: offered / (answered - absent): of those that the answers name.
SELECT
    counted.sweep_id,
    any_value(counted.snapshot_date) AS snapshot_date,
    counted.operation,
    counted.market,
    counted.product_type,
    sum(counted.planned)::BIGINT AS planned,
    sum(counted.offered)::BIGINT AS offered,
    sum(
        counted.no_offer_1023 + counted.no_offer_1024 + counted.no_offer_1025 + counted.no_offer_1026
        + counted.no_offer_other
    )::BIGINT AS no_offer,
    sum(counted.no_offer_1023)::BIGINT AS no_offer_1023,
    sum(counted.no_offer_1024)::BIGINT AS no_offer_1024,
    sum(counted.no_offer_1025)::BIGINT AS no_offer_1025,
    sum(counted.no_offer_1026)::BIGINT AS no_offer_1026,
    sum(counted.no_offer_other)::BIGINT AS no_offer_other,
    sum(counted.absent)::BIGINT AS absent,
    sum(counted.planned - counted.rejected - counted.failed - counted.not_swept)::BIGINT AS answered,
    sum(
        counted.planned - counted.rejected - counted.failed - counted.not_swept
    ) FILTER (WHERE counted.rooms > 1)::BIGINT AS answered_rooms,
    sum(counted.offered)::DOUBLE / nullif(answered, 0) AS availability, -- noqa: RF02
    sum(counted.offered)::DOUBLE / nullif(answered - sum(counted.absent), 0) AS availability_of_present -- noqa: RF02
FROM state.cell_count AS counted
GROUP BY counted.sweep_id, counted.operation, counted.market, counted.product_type
