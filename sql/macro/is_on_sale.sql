-- Whether an offer counts as on sale at an instant, given since when answers have left it in doubt (NULL: no doubt).
CREATE OR REPLACE MACRO mart.is_on_sale(doubted_since, as_of, unobserved_nights) AS (
    doubted_since IS NULL
    OR as_of IS NULL
    OR doubted_since > as_of
    OR date_diff('day', mart.utc(doubted_since)::DATE, mart.utc(as_of)::DATE)
    < unobserved_nights
)
