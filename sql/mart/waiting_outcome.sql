-- One row per source, market, product type, check-in and lead days: how often waiting paid off, for past stays.
-- Only stays that have begun count. The decision is taken 1, 3, 7, 14, 21, 30, 45, 60 and 90 days before check-in. Each
-- offer on sale that day and answered later is compared with itself. Waiting paid off if a lower total followed; it
-- cost if none followed and the offer was gone or dearer when last answered; otherwise it made no difference.
-- A market requested both in a currency by name and without one, and answered in the same currency, counts once.
-- A market that answers without a single offer has more likely failed (see mart.market_silence): that is no answer.
-- A day on which no such stay was answered that many days ahead counts for no offer: it would for those alone that kept
-- their price until the next answer.
-- decided_on: Day of the decision: check_in - lead_days.
-- stays: Number of properties with such offers.
-- offers: Number of offers on sale on that day and answered later.
-- paid: Number of offers for which waiting paid off.
-- cost: Number of offers for which waiting cost.
-- lower_pct: Mean decrease to the lowest later total of the offers for which waiting paid off, in percent (geometric).
-- balance_square: Sum over the stays of (paid - cost) squared.
-- balance_offers: Sum over the stays of (paid - cost) x offers.
-- offers_square: Sum over the stays of offers squared.
WITH begun AS (
    SELECT
        history.source,
        history.property_id,
        history.offer_key,
        history.cell_key,
        history.nights,
        history.party,
        history.market,
        history.product_type,
        history.check_in,
        history.is_offered,
        history.valid_from,
        CASE WHEN history.is_offered AND history.total > 0 THEN history.total END AS total,
        mart.utc(history.valid_from)::DATE AS from_date,
        mart.utc(history.last_seen_at)::DATE AS seen_date
    FROM mart.offer_history AS history
    -- Missing only in a silence: whether it was gone is unknown.
    ANTI JOIN mart.market_silence AS silence
        ON
            NOT history.is_offered
            AND silence.operation = CASE history.source WHEN 'multi' THEN 'multi' ELSE 'single' END
            AND silence.market = history.market
            AND silence.started_at = history.last_seen_at
            AND silence.sold_at < history.valid_from
    WHERE
        history.check_in <= (SELECT max(sweep.snapshot_date) FROM mart.sweep AS sweep)
        -- In a partly unreadable detail answer, a dearer product may represent the key.
        AND (history.is_whole OR history.source = 'multi')
    QUALIFY
        history.currency IS NOT DISTINCT FROM min(history.currency) OVER (
            PARTITION BY
                history.source,
                history.property_id,
                history.market,
                history.product_type,
                history.check_in,
                history.nights,
                history.party
        )
),

answered_on AS (
    SELECT DISTINCT
        CASE count_of.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
        count_of.market,
        count_of.product_type,
        count_of.lead_days,
        count_of.snapshot_date
    FROM state.cell_count AS count_of
    WHERE count_of.planned > count_of.rejected + count_of.failed + count_of.not_swept
),

decided AS (
    SELECT
        begun.*,
        lead.lead_days,
        begun.check_in - lead.lead_days AS decided_on
    FROM begun
    INNER JOIN (SELECT unnest([1, 3, 7, 14, 21, 30, 45, 60, 90]) AS lead_days) AS lead
        ON begun.check_in - lead.lead_days BETWEEN begun.from_date AND begun.seen_date
    LEFT JOIN answered_on
        ON
            answered_on.source = begun.source
            AND answered_on.market = begun.market
            AND answered_on.product_type = begun.product_type
            AND answered_on.lead_days = lead.lead_days
            AND answered_on.snapshot_date = begun.check_in - lead.lead_days
    WHERE
        begun.total IS NOT NULL
        -- The first and the last day of an interval were answered.
        AND (decided_on IN (begun.from_date, begun.seen_date) OR answered_on.market IS NOT NULL)
    -- Of two sweeps of one day, the later one counts.
    QUALIFY
        row_number() OVER (
            PARTITION BY begun.source, begun.property_id, begun.offer_key, lead.lead_days ORDER BY begun.valid_from DESC
        ) = 1
        AND begun.cell_key = min(begun.cell_key) OVER (
            PARTITION BY
                begun.source,
                begun.property_id,
                begun.market,
                begun.product_type,
                begun.check_in,
                begun.nights,
                begun.party,
                lead.lead_days
        )
),

outcome AS (
    SELECT
        decided.source,
        decided.property_id,
        decided.offer_key,
        decided.market,
        decided.product_type,
        decided.check_in,
        decided.lead_days,
        decided.decided_on,
        decided.total,
        min(later.total) AS lowest,
        arg_max(later.is_offered, later.valid_from) AS is_offered_last,
        arg_max(later.total, later.valid_from) AS total_last
    FROM decided
    INNER JOIN begun AS later
        ON
            later.source = decided.source
            AND later.property_id = decided.property_id
            AND later.offer_key = decided.offer_key
            AND later.valid_from >= decided.valid_from
            AND later.seen_date > decided.decided_on
    GROUP BY ALL
),

judged AS (
    SELECT
        outcome.*,
        coalesce(outcome.lowest < outcome.total, FALSE) AS has_paid,
        NOT has_paid AND (NOT outcome.is_offered_last OR outcome.total_last > outcome.total) AS has_cost
    FROM outcome
),

stay AS (
    SELECT
        judged.source,
        judged.property_id,
        judged.market,
        judged.product_type,
        judged.check_in,
        judged.lead_days,
        judged.decided_on,
        count(*) AS offers,
        count(*) FILTER (WHERE judged.has_paid) AS paid,
        count(*) FILTER (WHERE judged.has_cost) AS cost,
        -- Sums of floats differ by the order of the rows; sums of whole billionths do not.
        sum(round(ln(judged.lowest::DOUBLE / judged.total::DOUBLE) * 1e9)::HUGEINT) FILTER (
            WHERE judged.has_paid
        ) AS ln_lower
    FROM judged
    GROUP BY ALL
)

SELECT
    stay.source,
    stay.market,
    stay.product_type,
    stay.check_in,
    stay.lead_days,
    stay.decided_on,
    count(*) AS stays,
    sum(stay.offers)::BIGINT AS offers,
    sum(stay.paid)::BIGINT AS paid,
    sum(stay.cost)::BIGINT AS cost,
    round(100 * (1 - exp(sum(stay.ln_lower)::DOUBLE / 1e9 / nullif(sum(stay.paid), 0))), 6) AS lower_pct,
    sum((stay.paid - stay.cost) ** 2)::BIGINT AS balance_square,
    sum((stay.paid - stay.cost) * stay.offers)::BIGINT AS balance_offers,
    sum(stay.offers ** 2)::BIGINT AS offers_square
FROM stay
GROUP BY ALL
