-- Whether the supplier answered a cell of this status: with an offer, without one, or with a list that omits it.
CREATE OR REPLACE MACRO mart.is_answered(status) AS (status IN ('offered', 'no_offer', 'absent'))
