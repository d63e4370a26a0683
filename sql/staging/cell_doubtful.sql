-- One row per cell of the sweep of which a part of an answer without a property may be.
-- Likeliest is a property that was on sale whenever it was answered, and is missing now; then one that was on sale
-- when it was answered last; then any other that the answer does not name. As many of the likeliest as there are such
-- parts are in doubt, equally likely ones all of them. An answer may name properties of several ranges.
WITH nameless AS (
    SELECT
        reject.search_id,
        count(*) AS parts
    FROM sweep_files.reject AS reject
    WHERE reject.property_id IS NULL
    GROUP BY reject.search_id
),

missing AS (
    SELECT
        cell.search_id,
        cell.property_id,
        nameless.parts,
        CASE
            WHEN before.known_status = 'offered' AND before.spells = 1 THEN 1
            WHEN before.known_status = 'offered' OR before.known_status IS NULL THEN 2
            ELSE 3
        END AS likelihood
    FROM sweep_files.cell AS cell
    INNER JOIN nameless ON nameless.search_id = cell.search_id
    LEFT JOIN state.cell AS before
        ON
            before.operation = cell.operation
            AND before.property_id = cell.property_id
            AND before.cell_key = mart.cell_key(
                cell.property_id,
                cell.market,
                cell.product_type,
                cell.check_in,
                cell.nights,
                cell.party,
                cell.currency_asked
            )
    WHERE cell.status <> 'offered'
)

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
