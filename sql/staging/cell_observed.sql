-- One row per cell of the sweep, with whether its answer shows what is on sale and what is not.
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
    cell.status IN ('offered', 'no_offer', 'absent') AS is_answered,
    -- The part that could not be read, or that an error beside the offers refers to, may be the very offer that
    -- seems to be gone.
    is_answered -- noqa: RF02
    AND unread.search_id IS NULL
    AND doubtful.search_id IS NULL
    AND search.failure IS NULL AS is_answered_whole,
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
