-- One row per source and offer key of a batch. `level_cents`: its total at level 100, in cents of its currency.
SELECT
    (row_number() OVER () - 1)::INTEGER AS series_no,
    cell.* EXCLUDE (property_no, property_id), -- noqa: RF02
    product.*,
    mart.offer_key(cell.cell_key, 0, product.room_id, product.board_id, product.policy_key, cell.currency) AS offer_key,
    cell.product_type = 'Hotel' AND product.states_floor AS has_floor,
    drawn('churn', concat_ws('/', cell.source, offer_key), 200) AS churn_phase,
    1 + drawn('away', concat_ws('/', cell.source, offer_key), 10) AS nights_away,
    drawn('product', offer_key, 4) = 0 AS has_passing_product,
    cell.nights
    * (
        product.nightly_cents * product.factor
        * CASE cell.party WHEN '1' THEN 0.91 WHEN '2' THEN 1.0 ELSE 1.23 END
        + product.guest_night_cents * CASE cell.party WHEN '1' THEN 1 WHEN '2' THEN 2 ELSE 4 END
    )
    * CASE cell.nights WHEN 2 THEN 0.97 ELSE 1.0 END
    * (1 + (drawn('market', concat_ws('/', product.property_no, cell.market), 9) - 4) / 1000.0)
    * CASE WHEN product.is_dear_abroad AND cell.market = 'DE' THEN 1.06 ELSE 1.0 END
    * CASE cell.product_type WHEN 'Package' THEN product.package_pct / 100.0 ELSE 1.0 END
    -- A detail answer is not always as cheap as the list was.
    * CASE WHEN cell.source = 'detail' AND drawn('untrue', offer_key, 30) = 0 THEN 1.02 ELSE 1.0 END
    * CASE cell.currency WHEN 'GBP' THEN 0.862 ELSE 1.0 END AS level_cents
FROM cell
INNER JOIN product ON product.property_no = cell.property_no
WHERE cell.product_type = 'Hotel' OR NOT product.is_hotel_only
