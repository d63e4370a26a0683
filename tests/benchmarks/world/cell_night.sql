-- One row per cell of a batch and night on which it is requested.
SELECT
    cell.cell_no,
    search.night,
    search.search_id,
    search.searched_at,
    search.outcome,
    cell.operation = 'multi' AND drawn('absent', concat_ws('/', cell.cell_key, search.night), 500) = 0 AS is_absent
FROM cell
INNER JOIN search ON search.question_no = cell.question_no AND search.asked_no = cell.asked_no
