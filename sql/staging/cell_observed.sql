-- One row per cell of the sweep, with whether its answer tells what is on sale and what is not.
-- A part of an answer that names no property can be of any that the answer does not name. Likeliest is one that was on
-- sale whenever it was answered, and is missing now; then one that was on sale when it was answered last; then any
-- other. As many of the likeliest as there are such parts are in doubt, equally likely ones all of them; others not.
WITH nameless AS (
    SELECT
        reject.search_id,
        count(*) AS parts
    FROM sweep_files.reject AS reject
    WHERE reject.property_id IS NULL
    GROUP BY reject.search_id
),

unread AS (
    SELECT DISTINCT
        reject.search_id,
        reject.property_id
    FROM sweep_files.reject AS reject
    WHERE reject.property_id IS NOT NULL
),

keyed AS (
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
        ) AS cell_key
    FROM sweep_files.cell AS cell
),

missing AS (
    SELECT
        keyed.search_id,
        keyed.property_id,
        nameless.parts,
        CASE
            WHEN before.known_status = 'offered' AND before.spells = 1 THEN 1
            WHEN before.known_status = 'offered' OR before.known_status IS NULL THEN 2
            ELSE 3
        END AS likelihood
    FROM keyed
    INNER JOIN nameless ON nameless.search_id = keyed.search_id
    LEFT JOIN state.cell AS before
        ON
            before.operation = keyed.operation
            AND before.property_id = keyed.property_id
            AND before.cell_key = keyed.cell_key
    WHERE keyed.status <> 'offered'
),

doubtful AS (
    SELECT
        missing.search_id,
        missing.property_id
    FROM missing
    -- Likelier ones than it, of the same search, are fewer than the parts.
    QUALIFY
        coalesce(
            count(*) OVER (
                PARTITION BY missing.search_id
                ORDER BY missing.likelihood ASC
                RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            0
        ) < missing.parts
)

SELECT
    keyed.* EXCLUDE (cell_key), -- noqa: RF02
    keyed.cell_key,
    CASE keyed.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
    keyed.status IN ('offered', 'no_offer', 'absent') AS is_answered,
    -- What could not be read in an answer may be the very offer that seems to be gone.
    is_answered AND unread.search_id IS NULL AND doubtful.search_id IS NULL AS is_answered_whole -- noqa: RF02
FROM keyed
LEFT JOIN unread ON unread.search_id = keyed.search_id AND unread.property_id = keyed.property_id
LEFT JOIN doubtful ON doubtful.search_id = keyed.search_id AND doubtful.property_id = keyed.property_id
