-- One row per operation, cell and time that it was on sale, as in mart.cell_history: with what ended it.
-- A cell is requested in one currency. If a market is requested in several, at once or one after another, the times of
-- its cells are the same ones, or continue each other: see mart.on_sale_spell.
-- known_to: Start of the sweep that found the next status, which ended it; NULL: it has not ended.
-- next_status: Status that ended it; NULL: it has not ended, or that is unknown.
-- In a market that answered without a single offer (see mart.market_silence), it is what was found when the market sold
-- again; in a currency that is no longer requested, what was found in the next one.
-- next_code: Code of next_status; see mart.cell_history.
-- lead_days_to: Days from known_to to check-in.
-- is_off_sale_next: Whether an answer without an offer ended it.
-- There is seldom any that ended in a silence, so that these joins cost nothing.
WITH ended_in_silence AS (
    SELECT
        history.operation,
        history.property_id,
        history.cell_key,
        history.check_in,
        history.known_from,
        history.known_to,
        silence.selling_at
    FROM mart.cell_history AS history
    INNER JOIN mart.market_silence AS silence
        ON
            silence.operation = history.operation
            AND silence.market = history.market
            AND silence.started_at = history.known_to
    WHERE history.known_status = 'offered' AND history.next_status IN ('absent', 'no_offer')
),

-- With what it was when the market sold again; NULL: on sale again, or not answered since.
judged_later AS (
    SELECT
        ended.operation,
        ended.cell_key,
        ended.known_from,
        any_value(gone.known_status) AS next_status,
        any_value(gone.known_code) AS next_code,
        any_value(ended.selling_at) FILTER (WHERE gone.cell_key IS NOT NULL) AS known_to,
        any_value(date_diff('day', mart.utc(ended.selling_at)::DATE, ended.check_in)) FILTER (
            WHERE gone.cell_key IS NOT NULL
        ) AS lead_days_to
    FROM ended_in_silence AS ended
    LEFT JOIN mart.cell_history AS gone
        ON
            gone.operation = ended.operation
            AND gone.property_id = ended.property_id
            AND gone.cell_key = ended.cell_key
            AND gone.known_status IN ('absent', 'no_offer')
            AND gone.known_from <= ended.selling_at
            AND gone.known_seen_at >= ended.selling_at
    GROUP BY ended.operation, ended.cell_key, ended.known_from
),

-- A market whose currency was changed answers in the new one that a cell is no longer on sale.
off_sale_elsewhere AS (
    SELECT
        earlier.operation,
        earlier.cell_key,
        earlier.known_from,
        later.known_status AS next_status,
        later.known_code AS next_code,
        later.known_from AS known_to,
        later.lead_days_from AS lead_days_to
    FROM mart.cell_history AS earlier
    ASOF INNER JOIN mart.cell_history AS later
        ON
            later.operation = earlier.operation
            AND later.property_id = earlier.property_id
            AND later.market = earlier.market
            AND later.product_type = earlier.product_type
            AND later.check_in = earlier.check_in
            AND later.nights = earlier.nights
            AND later.party = earlier.party
            AND later.known_from > earlier.known_seen_at
    WHERE
        earlier.known_status = 'offered'
        AND coalesce(earlier.next_status = 'stay_began', TRUE)
        AND earlier.known_seen_at < (SELECT max(sweep.started_at) FROM mart.sweep AS sweep)
        AND later.known_status IN ('absent', 'no_offer')
)

SELECT
    history.* REPLACE (
        CASE
            WHEN later.cell_key IS NOT NULL THEN later.next_status
            ELSE coalesce(elsewhere.next_status, history.next_status)
        END AS next_status,
        CASE
            WHEN later.cell_key IS NOT NULL THEN later.next_code
            WHEN elsewhere.cell_key IS NULL THEN history.next_code
            ELSE elsewhere.next_code
        END AS next_code,
        CASE
            WHEN later.cell_key IS NOT NULL THEN later.known_to
            ELSE coalesce(elsewhere.known_to, history.known_to)
        END AS known_to,
        CASE
            WHEN later.cell_key IS NOT NULL THEN later.lead_days_to
            ELSE coalesce(elsewhere.lead_days_to, history.lead_days_to)
        END AS lead_days_to
    ),
    coalesce(
        CASE
            WHEN later.cell_key IS NOT NULL THEN later.next_status
            ELSE coalesce(elsewhere.next_status, history.next_status)
        END IN ('absent', 'no_offer'),
        FALSE
    ) AS is_off_sale_next
FROM mart.cell_history AS history
LEFT JOIN judged_later AS later
    ON
        later.operation = history.operation
        AND later.cell_key = history.cell_key
        AND later.known_from = history.known_from
LEFT JOIN off_sale_elsewhere AS elsewhere
    ON
        elsewhere.operation = history.operation
        AND elsewhere.cell_key = history.cell_key
        AND elsewhere.known_from = history.known_from
WHERE history.known_status = 'offered'
