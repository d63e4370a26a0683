-- Whether the evidence of a disparity shows which price deviates: not if there are two alone, or others decide nothing.
CREATE OR REPLACE MACRO mart.shows_which(evidence) AS (
    len(evidence) > 2
    AND NOT list_contains(list_transform(evidence, LAMBDA item: item['role']), 'other')
)
