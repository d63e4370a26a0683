-- One row per cell of the sweep, with whether its answer tells what is on sale and what is not.
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
    -- What could not be read in an answer may be the very offer that seems to be gone.
    is_answered AND unread.search_id IS NULL AS is_answered_whole
FROM sweep_files.cell AS cell
LEFT JOIN (
    SELECT DISTINCT
        search_id,
        property_id
    FROM sweep_files.reject
) AS unread
    ON
        unread.search_id = cell.search_id
        -- A part without a property can only be of one that the answer does not name.
        AND (unread.property_id = cell.property_id OR (unread.property_id IS NULL AND cell.status <> 'offered'))
-- One answer may have unread parts with and without a property.
QUALIFY row_number() OVER (PARTITION BY cell.search_id, cell.property_id ORDER BY unread.property_id) = 1
