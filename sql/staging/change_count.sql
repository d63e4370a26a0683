-- One row: how many offer keys this sweep changed, by the kind of change.
SELECT
    count(*) FILTER (WHERE change = 'first') AS offers_first,
    count(*) FILTER (WHERE change = 'value') AS offers_changed,
    count(*) FILTER (WHERE change = 'gone') AS offers_gone,
    count(*) FILTER (WHERE change = 'back') AS offers_back,
    count(*) FILTER (WHERE change = 'value' AND total IS DISTINCT FROM previous_total) AS price_changes
FROM night.offer_change
