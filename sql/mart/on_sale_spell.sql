-- One row per operation, property, market, product type, stay and party, and spell: a time that it was on sale.
-- A cell requested in several currencies, at once or one after another, is one cell.
-- spell_no: Number of the spell, from 1; the next begins once an answer without an offer has ended the one before.
-- known_from: Start of the sweep that first found it on sale.
-- lead_days_from: Days from that sweep to check-in.
-- lead_days_seen: Days from the latest answer with an offer to check-in.
-- lead_days_to: Days from the answer that followed to check-in.
-- next_status: What that answer found; see mart.cell_on_sale.
-- next_code: Its code.
-- Read three times.
WITH on_sale AS MATERIALIZED (
    FROM mart.cell_on_sale
),

-- Most cells have been on sale once. Sorting is costly, so only the others are sorted into spells.
several AS (
    SELECT
        on_sale.operation,
        on_sale.property_id,
        on_sale.market,
        on_sale.product_type,
        on_sale.check_in,
        on_sale.nights,
        on_sale.party
    FROM on_sale
    GROUP BY ALL
    HAVING count(*) > 1
),

-- A cell begins to be on sale if the latest answer with an offer, in any currency, was followed by one without.
began AS (
    SELECT
        on_sale.*,
        coalesce(
            arg_max(
                CASE WHEN on_sale.is_off_sale_next THEN on_sale.known_to ELSE TIMESTAMPTZ 'infinity' END,
                { 'seen_at': on_sale.known_seen_at, 'is_off_sale_next': on_sale.is_off_sale_next }
            )
                OVER (
                    PARTITION BY
                        on_sale.operation,
                        on_sale.property_id,
                        on_sale.market,
                        on_sale.product_type,
                        on_sale.check_in,
                        on_sale.nights,
                        on_sale.party
                    ORDER BY on_sale.known_from, on_sale.cell_key
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                )
            <= on_sale.known_from,
            FALSE
        ) AS is_beginning
    FROM on_sale
    SEMI JOIN several
        ON
            several.operation = on_sale.operation
            AND several.property_id = on_sale.property_id
            AND several.market = on_sale.market
            AND several.product_type = on_sale.product_type
            AND several.check_in = on_sale.check_in
            AND several.nights = on_sale.nights
            AND several.party = on_sale.party
),

numbered AS (
    SELECT
        began.*,
        1 + count(*) FILTER (WHERE began.is_beginning) OVER (
            PARTITION BY
                began.operation,
                began.property_id,
                began.market,
                began.product_type,
                began.check_in,
                began.nights,
                began.party
            ORDER BY began.known_from, began.cell_key
            ROWS UNBOUNDED PRECEDING
        ) AS spell_no
    FROM began
),

of_several AS (
    SELECT
        numbered.operation,
        numbered.property_id,
        numbered.market,
        numbered.product_type,
        numbered.check_in,
        numbered.nights,
        numbered.party,
        numbered.spell_no,
        min(numbered.known_from) AS known_from,
        max(numbered.lead_days_from) AS lead_days_from,
        arg_max(
            {
                'lead_days_seen': numbered.lead_days_seen,
                'lead_days_to': numbered.lead_days_to,
                'next_status': numbered.next_status,
                'next_code': numbered.next_code
            },
            { 'seen_at': numbered.known_seen_at, 'is_off_sale_next': numbered.is_off_sale_next }
        ) AS latest
    FROM numbered
    GROUP BY
        numbered.operation,
        numbered.property_id,
        numbered.market,
        numbered.product_type,
        numbered.check_in,
        numbered.nights,
        numbered.party,
        numbered.spell_no
)

SELECT
    of_several.operation,
    of_several.property_id,
    of_several.market,
    of_several.product_type,
    of_several.check_in,
    of_several.nights,
    of_several.party,
    of_several.spell_no,
    of_several.known_from,
    of_several.lead_days_from,
    of_several.latest['lead_days_seen'] AS lead_days_seen,
    of_several.latest['lead_days_to'] AS lead_days_to,
    of_several.latest['next_status'] AS next_status,
    of_several.latest['next_code'] AS next_code
FROM of_several

UNION ALL

SELECT
    on_sale.operation,
    on_sale.property_id,
    on_sale.market,
    on_sale.product_type,
    on_sale.check_in,
    on_sale.nights,
    on_sale.party,
    1 AS spell_no,
    on_sale.known_from,
    on_sale.lead_days_from,
    on_sale.lead_days_seen,
    on_sale.lead_days_to,
    on_sale.next_status,
    on_sale.next_code
FROM on_sale
ANTI JOIN several
    ON
        several.operation = on_sale.operation
        AND several.property_id = on_sale.property_id
        AND several.market = on_sale.market
        AND several.product_type = on_sale.product_type
        AND several.check_in = on_sale.check_in
        AND several.nights = on_sale.nights
        AND several.party = on_sale.party
