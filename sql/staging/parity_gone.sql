-- One row per offer, or offer compared with, of a running episode that tonight's answers show not to be on sale.
-- While its market sells nothing at all (night.market_silent), it is unknown. What is still missing when the market
-- sells again, or is silent for longer, is gone, although it was missing before.
WITH paired AS (
    SELECT
        before.source,
        before.property_id,
        before.offer_key
    FROM state.parity_open AS before

    UNION

    SELECT
        before.source,
        before.property_id,
        before.reference_offer_key AS offer_key
    FROM state.parity_open AS before
)

SELECT
    paired.source,
    paired.property_id,
    paired.offer_key
FROM paired
INNER JOIN night.offer_ending AS missing
    ON
        missing.source = paired.source
        AND missing.property_id = paired.property_id
        AND missing.offer_key = paired.offer_key
        AND NOT missing.is_seen
INNER JOIN night.cell_observed AS cell
    ON
        cell.source = missing.source
        AND cell.property_id = missing.property_id
        AND cell.cell_key = missing.cell_key
        AND cell.is_answered_whole
ANTI JOIN night.market_silent AS silent
    ON
        silent.operation = cell.operation
        AND silent.market = cell.market
