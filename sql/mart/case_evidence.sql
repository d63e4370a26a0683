-- One row per case: the findings that say it best.
-- case_id: Case, as in report.finding_case.
-- evidence: Up to three of its counted findings: the most severe ones; for a market or the supplier, of median size.
-- Among findings of the same size, those of the last sweep come first.
WITH latest AS (
    SELECT
        max(sweep.started_at) AS started_at,
        max(sweep.snapshot_date) AS snapshot_date,
        arg_max(sweep.sweep_id, sweep.started_at) AS sweep_id
    FROM mart.sweep AS sweep
),

placed AS (
    SELECT
        flag.case_id,
        flag.offer,
        flag.flag_id,
        flag.first_flagged_at,
        flag.is_open,
        CASE
            WHEN flag.scope <> 'property'
                THEN abs(flag.size_pct - median(flag.size_pct) OVER (PARTITION BY flag.case_id))
        END AS from_median,
        -- Sizes are compared as they are shown. Among equal ones, what the last sweep found comes first: the price of a
        -- far stay, which is requested once a week, would read as if nothing had been found since.
        row(
            coalesce(round(from_median, 1), 'infinity'),
            CASE flag.severity WHEN 'high' THEN 1 WHEN 'medium' THEN 2 ELSE 3 END,
            coalesce(-round(abs(flag.size_pct), 1), 'infinity'),
            flag.is_open AND flag.last_flagged_at < latest.started_at,
            coalesce(from_median, 'infinity'),
            coalesce(-abs(flag.size_pct), 'infinity'),
            flag.flag_id,
            flag.first_flagged_at
        ) AS place
    FROM mart.case_flag AS flag
    CROSS JOIN latest
    WHERE flag.is_counted
),

-- An offer in both a list and a detail answer is evidence once.
of_offer AS (
    SELECT
        placed.case_id,
        arg_min(
            {
                'flag_id': placed.flag_id,
                'first_flagged_at': placed.first_flagged_at
            },
            placed.place
        ) AS flag,
        min(placed.place) AS place,
        any_value(placed.is_open) AS is_open
    FROM placed
    GROUP BY placed.case_id, placed.offer
),

best_of AS (
    SELECT
        of_offer.case_id,
        -- The best three, which takes less memory than sorting all of them.
        arg_min(of_offer.flag, of_offer.place, 3) AS best,
        any_value(of_offer.is_open) AS is_open
    FROM of_offer
    GROUP BY of_offer.case_id
),

chosen AS (
    SELECT
        best.case_id,
        best.place,
        flag.flag_id,
        flag.rule,
        flag.finding,
        flag.market,
        flag.evidence,
        -- A difference stays open while only rates have moved, or fewer markets show it: its prices are then those of
        -- another night.
        CASE
            WHEN
                mart.compares_markets(flag.rule)
                AND best.is_open
                AND flag.last_flagged_at < latest.started_at
                THEN flag.last_flagged_at
        END AS last_found_at
    FROM (
        SELECT
            best_of.case_id,
            best_of.is_open,
            unnest(best_of.best) AS flag,
            generate_subscripts(best_of.best, 1) AS place
        FROM best_of
    ) AS best
    INNER JOIN report.flag_history AS flag
        ON
            flag.flag_id = best.flag.flag_id
            AND flag.first_flagged_at = best.flag.first_flagged_at
    CROSS JOIN latest
),

held AS (
    SELECT
        chosen.flag_id,
        chosen.market,
        unnest(chosen.evidence) AS item
    FROM chosen
    -- The total of an offer would not show what it is with fees.
    WHERE
        chosen.last_found_at IS NOT NULL
        AND chosen.rule = 'market_disparity'
),

-- What those prices are now.
present AS (
    SELECT
        held.flag_id,
        arg_min(
            format(
                ' On {}: {:,.2f} {} in {}, {:,.2f} in {}.',
                latest.snapshot_date,
                parity.total::DOUBLE,
                parity.currency,
                parity.market,
                parity.reference_total::DOUBLE,
                parity.reference_market
            ),
            parity.market
        ) AS prices
    FROM held
    CROSS JOIN latest
    INNER JOIN mart.market_parity AS parity
        ON
            parity.source = held.item.source
            AND parity.property_id = held.item.property_id
            AND parity.offer_key = held.item.offer_key
            AND parity.seen_sweep_id = latest.sweep_id
    WHERE
        parity.match_grade = 'exact'
        AND parity.currency_basis = 'same'
        AND held.market IN (parity.market, parity.reference_market)
    GROUP BY held.flag_id
),

-- Of a market that cannot be compared now, its own price.
present_alone AS (
    SELECT
        held.flag_id,
        min(
            format(
                ' On {}: {:,.2f} {} in {}.', latest.snapshot_date, offer.total::DOUBLE, offer.currency, offer.market
            )
        ) AS prices
    FROM held
    CROSS JOIN latest
    INNER JOIN mart.offer_latest AS offer
        ON
            offer.source = held.item.source
            AND offer.property_id = held.item.property_id
            AND offer.offer_key = held.item.offer_key
            AND offer.market = held.market
            AND offer.seen_sweep_id = latest.sweep_id
    GROUP BY held.flag_id
)

SELECT
    chosen.case_id,
    list(
        {
            'flag_id': chosen.flag_id,
            'finding': chosen.finding
            || coalesce(strftime(chosen.last_found_at AT TIME ZONE 'UTC', ' Last found on %Y-%m-%d.'), '')
            || coalesce(present.prices, present_alone.prices, '')
        }
        ORDER BY chosen.place
    ) AS evidence
FROM chosen
LEFT JOIN present ON present.flag_id = chosen.flag_id
LEFT JOIN present_alone ON present_alone.flag_id = chosen.flag_id
GROUP BY chosen.case_id
