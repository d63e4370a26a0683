-- One row: offers of list answers that are dearer now than in the reference market, each offer once.
-- offers: Number of them in one currency.
-- offers_converted: Number of them at the reference rate, never added up with the others.
SELECT
    count(*) FILTER (WHERE currency_basis = 'same') AS offers,
    count(*) FILTER (WHERE currency_basis = 'reference_rate') AS offers_converted
FROM mart.parity_episode
WHERE
    is_running
    AND source = 'multi'
    AND is_within(property_id, market, check_in)
