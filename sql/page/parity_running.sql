-- One row: offers of list answers that are dearer now than in the reference market, each offer once.
SELECT count(*) AS offers
FROM mart.parity_episode
WHERE
    is_running
    AND source = 'multi'
    AND currency_basis <> 'supplier_rate'
    AND is_within(property_id, market, check_in)
