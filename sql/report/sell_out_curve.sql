-- One row per operation, market, product type, ending and lead days: share of cells still on sale (Kaplan-Meier).
-- An estimate, as most cells have not ended yet. A cell counts from the sweep that found it on sale (it enters late)
-- to the sweep that found it ended, or to the last that found it on sale (it is censored there). Only its first time on
-- sale counts; re-openings are separate. With few cells at risk far ahead, the estimate is poor: see at_risk.
-- A cell requested in several currencies, at once or one after another, is one cell. Of several sweeps of a day, the
-- cells that the first finds on sale are at risk in those that follow on that day. A market that answers without a
-- single offer has more likely failed (see mart.market_silence): what ends then has ended if it is still gone when
-- the market sells again, and is censored until then.
-- ending: `sold_out`: named without a room, or code 1023 or 1025; others are censored; `off_sale`: any without offer.
-- lead_days: Days from the snapshot to check-in, descending as the stay comes nearer.
-- at_risk: Number of cells on sale in the previous answer and answered again at this lead time or nearer.
-- ended: Number of cells at risk found ended at this lead time; the end is between this answer and the one before.
-- censored: Number of cells no longer observed, or ended otherwise, from this lead time on.
-- entered: Number of cells found on sale for the first time at this lead time.
-- reopened: Number of cells found on sale again at this lead time; not part of the estimate.
-- on_sale_share: Kaplan-Meier estimate of the share still on sale after this lead time.
-- standard_error: Standard error of on_sale_share by Greenwood's formula; NULL: all have ended.
WITH last_of_day AS (
    SELECT
        sweep.snapshot_date,
        max(sweep.started_at) AS started_at
    FROM mart.sweep AS sweep
    GROUP BY sweep.snapshot_date
),

-- There is seldom any, so that these joins cost nothing.
ended_in_silence AS (
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
),

-- In each currency, the times that the cell was on sale. Of a market that is requested in several currencies, at once
-- or one after another, they are the same times, or continue each other.
on_sale AS (
    SELECT
        history.* EXCLUDE (spells) -- noqa: RF02,RF03
        REPLACE (
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
        ) AS spells
    FROM began
),

spell AS (
    SELECT
        history.operation,
        history.market,
        history.product_type,
        history.spells,
        max(history.lead_days_from) AS lead_days_from,
        arg_max(
            {
                'lead_days_seen': history.lead_days_seen,
                'lead_days_to': history.lead_days_to,
                'next_status': history.next_status,
                'next_code': history.next_code
            },
            { 'seen_at': history.known_seen_at, 'is_off_sale_next': history.is_off_sale_next }
        ) AS latest,
        min(history.known_from) AS known_from
    FROM numbered AS history
    GROUP BY
        history.operation,
        history.property_id,
        history.market,
        history.product_type,
        history.check_in,
        history.nights,
        history.party,
        history.spells

    UNION ALL

    SELECT
        on_sale.operation,
        on_sale.market,
        on_sale.product_type,
        1 AS spells,
        on_sale.lead_days_from,
        {
            'lead_days_seen': on_sale.lead_days_seen,
            'lead_days_to': on_sale.lead_days_to,
            'next_status': on_sale.next_status,
            'next_code': on_sale.next_code
        } AS latest,
        on_sale.known_from
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
),

-- One row per way to count: which answers are the end that is looked for.
counted AS (
    SELECT
        spell.* EXCLUDE (latest, known_from), -- noqa: RF02,RF03
        ending.name AS ending,
        spell.latest['next_status'] AS next_status,
        coalesce(
            CASE ending.name
                WHEN 'sold_out'
                    THEN
                        next_status = 'no_offer' -- noqa: RF02
                        AND coalesce(spell.latest['next_code'], 1023) IN (1023, 1025)
                ELSE next_status IN ('absent', 'no_offer') -- noqa: RF02
            END, FALSE
        ) AS is_end,
        CASE WHEN is_end THEN spell.latest['lead_days_to'] ELSE spell.latest['lead_days_seen'] END -- noqa: RF02
            AS lead_days_end,
        coalesce(spell.known_from < last_of_day.started_at, FALSE) AS is_asked_again_that_day
    FROM spell
    LEFT JOIN last_of_day ON last_of_day.snapshot_date = mart.utc(spell.known_from)::DATE
    CROSS JOIN (VALUES ('sold_out'), ('off_sale')) AS ending (name)
),

change AS (
    SELECT
        counted.operation,
        counted.market,
        counted.product_type,
        counted.ending,
        counted.lead_days_from AS lead_days,
        count(*) FILTER (WHERE counted.spells = 1) AS entered,
        count(*) FILTER (WHERE counted.spells = 1 AND counted.is_asked_again_that_day) AS at_risk_that_day,
        0 AS ended,
        0 AS censored,
        count(*) FILTER (WHERE counted.spells > 1) AS reopened
    FROM counted
    GROUP BY counted.operation, counted.market, counted.product_type, counted.ending, counted.lead_days_from

    UNION ALL

    SELECT
        counted.operation,
        counted.market,
        counted.product_type,
        counted.ending,
        counted.lead_days_end AS lead_days,
        0 AS entered,
        0 AS at_risk_that_day,
        count(*) FILTER (WHERE counted.is_end) AS ended,
        count(*) FILTER (WHERE NOT counted.is_end) AS censored,
        0 AS reopened
    FROM counted
    WHERE counted.spells = 1
    GROUP BY counted.operation, counted.market, counted.product_type, counted.ending, counted.lead_days_end
),

by_lead AS (
    SELECT
        change.operation,
        change.market,
        change.product_type,
        change.ending,
        change.lead_days,
        sum(change.entered)::BIGINT AS entered,
        sum(change.at_risk_that_day)::BIGINT AS at_risk_that_day,
        sum(change.ended)::BIGINT AS ended,
        sum(change.censored)::BIGINT AS censored,
        sum(change.reopened)::BIGINT AS reopened
    FROM change
    GROUP BY change.operation, change.market, change.product_type, change.ending, change.lead_days
),

at_risk AS (
    SELECT
        by_lead.*,
        -- Those that enter at this lead time are not at risk before the next answer, which may be of the same day.
        greatest(
            coalesce(sum(by_lead.entered - by_lead.ended - by_lead.censored) OVER before, 0)
            + by_lead.at_risk_that_day,
            by_lead.ended
        )::BIGINT AS at_risk
    FROM by_lead
    WINDOW
        before AS (
            PARTITION BY by_lead.operation, by_lead.market, by_lead.product_type, by_lead.ending
            ORDER BY by_lead.lead_days DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
)

SELECT
    at_risk.operation,
    at_risk.market,
    at_risk.product_type,
    at_risk.ending,
    at_risk.lead_days,
    at_risk.at_risk,
    at_risk.ended,
    at_risk.censored,
    at_risk.entered,
    at_risk.reopened,
    round(product(1 - at_risk.ended / greatest(at_risk.at_risk, 1)) OVER so_far, 6) AS on_sale_share,
    CASE
        WHEN on_sale_share > 0 -- noqa: RF02
            THEN round(
                on_sale_share * sqrt( -- noqa: RF02
                    sum(
                        CASE
                            WHEN at_risk.at_risk > at_risk.ended
                                THEN at_risk.ended / (at_risk.at_risk::DOUBLE * (at_risk.at_risk - at_risk.ended))
                            ELSE 0
                        END
                    ) OVER so_far
                ), 6
            )
    END AS standard_error
FROM at_risk
WINDOW
    so_far AS (
        PARTITION BY at_risk.operation, at_risk.market, at_risk.product_type, at_risk.ending
        ORDER BY at_risk.lead_days DESC
    )
