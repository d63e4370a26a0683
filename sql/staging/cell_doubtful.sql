-- One row per cell of the sweep that an answer's part without a property id may belong to.
-- Cells that the previous answer put in doubt, and that are still missing, account for as many parts: first properties
-- that their market has never named, or not since they fell in doubt. Only further parts put other cells in doubt. The
-- likeliest is a cell that was on sale whenever it was answered and is missing now; then one that was on sale when last
-- answered; then any other that the answer does not name. As many of the likeliest are in doubt as there are further
-- parts; equally likely cells are all in doubt. A property that is missing although there are no more parts than before
-- is not in doubt. An answer may name properties of several ranges.
-- parts: Number of parts of the answer that name no property.
WITH nameless AS (
    SELECT
        reject.search_id,
        count(*) AS parts
    FROM sweep_files.reject AS reject
    WHERE reject.property_id IS NULL
    GROUP BY reject.search_id
),

asked AS (
    SELECT
        cell.search_id,
        cell.operation,
        cell.property_id,
        cell.market,
        cell.product_type,
        cell.status,
        nameless.parts,
        before.known_status,
        before.spells,
        before.parts_in_doubt
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
),

-- A stay that is requested for the first time is as doubtful as the other stays of its property.
of_other_stays AS (
    SELECT
        before.operation,
        before.property_id,
        before.market,
        before.product_type,
        max(before.parts_in_doubt) AS parts_in_doubt
    FROM state.cell AS before
    SEMI JOIN asked
        ON
            asked.operation = before.operation
            AND asked.property_id = before.property_id
            AND asked.market = before.market
            AND asked.product_type = before.product_type
            AND asked.parts_in_doubt IS NULL
    GROUP BY before.operation, before.property_id, before.market, before.product_type
),

recalled AS (
    SELECT
        asked.*,
        coalesce(asked.parts_in_doubt, of_other_stays.parts_in_doubt, 0) AS doubted_before,
        max(doubted_before) OVER (PARTITION BY asked.search_id) AS parts_before,
        sale.property_id IS NULL AS is_never_named,
        sale.quiet_date IS NOT NULL AS is_quiet,
        coalesce(sale.quiet_date IS NULL AND sale.last_offered_at < sale.last_answered_at, FALSE)
            AS is_doubted_throughout
    FROM asked
    LEFT JOIN of_other_stays
        ON
            of_other_stays.operation = asked.operation
            AND of_other_stays.property_id = asked.property_id
            AND of_other_stays.market = asked.market
            AND of_other_stays.product_type = asked.product_type
    LEFT JOIN state.property_sale AS sale
        ON
            sale.operation = asked.operation
            AND sale.property_id = asked.property_id
            AND sale.market = asked.market
            AND sale.product_type = asked.product_type
),

missing AS (
    SELECT
        recalled.search_id,
        recalled.property_id,
        recalled.parts,
        recalled.doubted_before > 0 AS is_still_missing,
        least(
            recalled.parts,
            recalled.parts_before,
            count(*) FILTER (WHERE recalled.doubted_before > 0) OVER (PARTITION BY recalled.search_id)
        ) AS explained,
        CASE
            WHEN recalled.doubted_before > 0
                THEN
                    CASE
                        WHEN recalled.is_never_named THEN 1
                        -- With fewer parts than before, a property that was named once is more likely gone.
                        WHEN
                            recalled.parts >= recalled.parts_before
                            AND (recalled.is_doubted_throughout OR recalled.known_status IS NOT DISTINCT FROM 'offered')
                            THEN 1
                        ELSE 2
                    END
            WHEN recalled.known_status = 'offered' AND recalled.spells = 1 THEN 1
            WHEN recalled.known_status = 'offered' OR (recalled.known_status IS NULL AND NOT recalled.is_quiet) THEN 2
            ELSE 3
        END AS likelihood
    FROM recalled
    WHERE recalled.status <> 'offered'
)

SELECT
    missing.search_id,
    missing.property_id,
    missing.parts
FROM missing
-- Fewer cells of the same search are likelier than there are parts.
QUALIFY
    coalesce(
        count(*) OVER (
            PARTITION BY missing.search_id, missing.is_still_missing
            ORDER BY missing.likelihood ASC
            RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        0
    ) < CASE WHEN missing.is_still_missing THEN missing.explained ELSE missing.parts - missing.explained END
