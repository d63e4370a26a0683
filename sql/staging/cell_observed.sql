-- One row per cell of the sweep, with whether its answer shows what is on sale and what is not.
-- is_left_out: Whether an answered list left its property open, and the request for that property alone failed.
SELECT
    cell.*,
    mart.cell_key(
        cell.property_id,
        cell.market,
        cell.product_type,
        cell.check_in,
        cell.nights,
        cell.party,
        cell.currency_asked
    ) AS cell_key,
    CASE cell.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
    mart.is_answered(cell.status) AS is_answered,
    -- The part that could not be read, or that an error beside the offers refers to, may be the very offer that
    -- seems to be gone.
    is_answered
    AND unread.search_id IS NULL
    AND doubtful.search_id IS NULL
    AND search.failure IS NULL AS is_answered_whole,
    cell.status = 'failed' AND asked_again.search_id IS NOT NULL AS is_left_out,
    coalesce(doubtful.parts, 0) AS parts_in_doubt
FROM sweep_files.cell AS cell
LEFT JOIN (
    SELECT DISTINCT
        reject.search_id,
        reject.property_id
    FROM sweep_files.reject AS reject
    WHERE reject.property_id IS NOT NULL
) AS unread ON unread.search_id = cell.search_id AND unread.property_id = cell.property_id
LEFT JOIN sweep_files.search AS search
    ON
        search.search_id = cell.search_id
        AND search.failure IS NOT NULL
LEFT JOIN night.cell_doubtful AS doubtful
    ON
        doubtful.search_id = cell.search_id
        AND doubtful.property_id = cell.property_id
-- Searches for what an answered one left open. The last eight bits of an id are its place among the halves, as in
-- pipeline/domain/search.py: those of 5 (101) are a half of 2 (10), which is one of 1.
LEFT JOIN (
    SELECT DISTINCT part.search_id
    FROM sweep_files.search AS part
    INNER JOIN sweep_files.search AS listed
        ON
            listed.search_id // 256 = part.search_id // 256
            AND listed.outcome = 'answered'
            AND list_contains(
                [part.search_id % 256 >> halved FOR halved IN range(1, 8)],
                listed.search_id % 256
            )
    WHERE part.search_id % 256 > 1
) AS asked_again ON asked_again.search_id = cell.search_id
