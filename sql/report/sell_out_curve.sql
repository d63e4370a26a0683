-- One row per operation, market, product type, ending and lead days: share of cells still on sale (Kaplan-Meier).
-- An estimate, as most cells have not ended yet. A cell counts from the sweep that found it on sale (it enters late)
-- to the sweep that found it ended, or to the last that found it on sale (it is censored there). Only its first time on
-- sale counts; re-openings are separate. With few cells at risk far ahead, the estimate is poor: see at_risk.
-- A cell requested in several currencies, at once or one after another, is one cell: see mart.on_sale_spell. Of several
-- sweeps of a day, the cells that the first finds on sale are at risk in those that follow on that day. A market that
-- answers without a single offer has more likely failed (see mart.market_silence): what ends then has ended if it is
-- still gone when the market sells again, and is censored until then.
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

-- One row per way to count: which answers are the end that is looked for.
counted AS (
    SELECT
        spell.operation,
        spell.market,
        spell.product_type,
        spell.spell_no,
        spell.lead_days_from,
        ending.name AS ending,
        coalesce(
            CASE ending.name
                WHEN 'sold_out'
                    THEN spell.next_status = 'no_offer' AND coalesce(spell.next_code, 1023) IN (1023, 1025)
                ELSE spell.next_status IN ('absent', 'no_offer')
            END, FALSE
        ) AS is_end,
        CASE WHEN is_end THEN spell.lead_days_to ELSE spell.lead_days_seen END AS lead_days_end,
        coalesce(spell.known_from < last_of_day.started_at, FALSE) AS is_asked_again_that_day
    FROM mart.on_sale_spell AS spell
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
        count(*) FILTER (WHERE counted.spell_no = 1) AS entered,
        count(*) FILTER (WHERE counted.spell_no = 1 AND counted.is_asked_again_that_day) AS at_risk_that_day,
        0 AS ended,
        0 AS censored,
        count(*) FILTER (WHERE counted.spell_no > 1) AS reopened
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
    WHERE counted.spell_no = 1
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
        WHEN on_sale_share > 0
            THEN round(
                on_sale_share * sqrt(
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
