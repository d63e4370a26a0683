-- One row per operation, property, market and product type that had offers and has gone quiet.
-- size_pct: NULL: the finding has no size.
-- amount: NULL: the finding is not about an amount.
-- severity: `high`, or `medium` if it may be sold out or has had offers in another market or product type since.
-- source: `multi` or `detail`: two series that are never mixed.
-- quiet_since: Start of the last sweep that found an offer.
-- answered_searches: Number of searches in the evidence that were answered without an offer.
-- offered_elsewhere: Other markets and product types in which this property has had an offer since.
-- If a market sells nothing at all for a day or two, that says nothing about its properties: these days do not count.
WITH market_day AS (
    SELECT
        counted.operation,
        counted.market,
        counted.snapshot_date,
        sum(counted.offered) > 0 AS is_selling,
        sum(counted.planned) > sum(counted.rejected + counted.failed + counted.not_swept) AS is_answered
    FROM state.cell_count AS counted
    GROUP BY counted.operation, counted.market, counted.snapshot_date
),

market_around AS (
    SELECT
        market_day.*,
        max(market_day.snapshot_date) FILTER (WHERE market_day.is_selling) OVER past AS sold_before,
        coalesce(
            min(market_day.snapshot_date) FILTER (WHERE market_day.is_selling) OVER future,
            max(market_day.snapshot_date) OVER () + 1
        ) AS sold_after
    FROM market_day
    WINDOW
        past AS (PARTITION BY market_day.operation, market_day.market ORDER BY market_day.snapshot_date ASC),
        future AS (PARTITION BY market_day.operation, market_day.market ORDER BY market_day.snapshot_date DESC)
),

silent_day AS (
    SELECT
        around.operation,
        around.market,
        around.snapshot_date
    FROM market_around AS around
    CROSS JOIN ref.analysis AS analysis
    WHERE
        NOT around.is_selling
        AND around.is_answered
        AND around.sold_after - around.sold_before - 1 <= analysis.silent_nights
),

sale AS (
    SELECT
        sale.*,
        sale.quiet_nights - (
            SELECT count(*)
            FROM silent_day AS silent
            WHERE
                silent.operation = sale.operation
                AND silent.market = sale.market
                AND silent.snapshot_date > mart.utc(sale.last_offered_at)::DATE
        ) >= analysis.quiet_nights AS is_quiet,
        -- Nothing is stated about earlier nights: the evidence begins with the last offer.
        count(*) OVER (
            PARTITION BY sale.operation, sale.property_id
            ORDER BY sale.last_offered_at
            RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) - count(*) OVER (
            PARTITION BY sale.operation, sale.property_id, sale.last_offered_at
        ) AS offered_elsewhere,
        -- With few requested stays, answers cannot distinguish a closed property from a full one.
        sale.quiet_cells < 10 * sale.quiet_nights AS is_of_few_stays
    FROM state.property_sale AS sale
    SEMI JOIN mart.property_requested AS requested
        ON
            requested.property_id = sale.property_id
            AND requested.market = sale.market
    CROSS JOIN ref.analysis AS analysis
),

quiet_search AS (
    SELECT
        search.operation,
        search.property_id,
        search.market,
        search.product_type,
        count(*) AS searches,
        list(
            mart.observation(
                'without_offer',
                CASE search.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END,
                search.property_id,
                NULL,
                search.sweep_id,
                search.search_id,
                NULL
            )
            ORDER BY search.sweep_id, search.search_id
        ) AS evidence
    FROM state.quiet_search AS search
    INNER JOIN sale
        ON
            sale.operation = search.operation
            AND sale.property_id = search.property_id
            AND sale.market = search.market
            AND sale.product_type = search.product_type
            AND sale.is_quiet
            AND search.asked_at > sale.last_offered_at
            -- The last one is reported below.
            AND NOT (search.sweep_id = sale.quiet_sweep_id AND search.search_id = sale.quiet_search_id)
    GROUP BY search.operation, search.property_id, search.market, search.product_type
)

SELECT
    'property_gone_quiet' AS rule,
    4 AS rule_version,
    mart.subject_key(
        rule,
        concat_ws(
            '|',
            sale.operation,
            sale.property_id,
            sale.market,
            sale.product_type
        )
    ) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    CASE WHEN sale.offered_elsewhere = 0 AND NOT sale.is_of_few_stays THEN 'high' ELSE 'medium' END AS severity,
    NULL::DOUBLE AS size_pct,
    NULL::DECIMAL(18, 4) AS amount,
    CASE sale.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END AS source,
    sale.property_id,
    sale.market,
    sale.product_type,
    NULL::DATE AS check_in,
    NULL::SMALLINT AS nights,
    NULL::VARCHAR AS party,
    NULL::VARCHAR AS currency,
    format(
        'No offer for {} days in a row; the last was on {}{}.{}',
        sale.quiet_nights,
        strftime(sale.last_offered_at AT TIME ZONE 'UTC', '%Y-%m-%d'),
        CASE sale.offered_elsewhere
            WHEN 0 THEN '. No other market or product type has had one since'
            WHEN 1 THEN '. Another market or product type has had offers since'
            ELSE format('. {} other markets or product types have had offers since', sale.offered_elsewhere)
        END,
        CASE
            WHEN sale.offered_elsewhere = 0 AND sale.is_of_few_stays
                THEN ' It may be sold out: few stays are requested.'
            ELSE ''
        END
    ) AS finding,
    [
        mart.observation(
            'last_offer',
            CASE sale.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END,
            sale.property_id,
            NULL,
            sale.offered_sweep_id,
            sale.offered_search_id,
            NULL
        )
    ]
    || coalesce(quiet_search.evidence, [])
    || [
        mart.observation(
            'without_offer',
            CASE sale.operation WHEN 'multi' THEN 'multi' ELSE 'detail' END,
            sale.property_id,
            NULL,
            sale.quiet_sweep_id,
            sale.quiet_search_id,
            NULL
        )
    ] AS evidence,
    mart.conversion(NULL, NULL, NULL, NULL) AS fx,
    sale.quiet_nights,
    sale.quiet_cells,
    sale.last_offered_at AS quiet_since,
    coalesce(quiet_search.searches, 0) + 1 AS answered_searches,
    sale.offered_elsewhere
FROM sale
LEFT JOIN quiet_search
    ON
        quiet_search.operation = sale.operation
        AND quiet_search.property_id = sale.property_id
        AND quiet_search.market = sale.market
        AND quiet_search.product_type = sale.product_type
WHERE sale.is_quiet
