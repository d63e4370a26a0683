-- One row per sweep, operation, market and product type: the share of answered cells that were on sale.
-- `absent` is not sold out. Of the codes, only 1023 and 1025 mean that nothing is left; 1026 occurs only for several
-- rooms.
-- no_offer: Number of cells answered without an offer, whatever the code.
-- answered: Number of cells that were answered: `offered`, `no_offer` or `absent`.
-- answered_rooms: Number of answered cells that requested several rooms.
-- availability: offered / answered; NULL: nothing was answered.
-- availability_of_present: offered / (answered - absent): the share among cells that the answers mention.
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
    sum(counted.offered)::DOUBLE / nullif(answered, 0) AS availability,
    sum(counted.offered)::DOUBLE / nullif(answered - sum(counted.absent), 0) AS availability_of_present
FROM state.cell_count AS counted
GROUP BY counted.sweep_id, counted.operation, counted.market, counted.product_type
