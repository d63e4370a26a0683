-- One row per source and like-for-like key of a selling price whose latest price is below the floor.
-- size_pct: amount in percent of the floor; always > 0.
-- amount: floor - price, in currency; always > 0.
-- floor: Floor at observed_at; if it moved between the answers before and after, the lower one of the two.
-- currency: ISO 4217 code of floor, price and amount: the currency of the floor.
-- price: Selling price in currency; converted if price_currency differs.
-- price_currency: ISO 4217 code of the currency in which the selling price was stated.
-- price_input_id: File that states the price.
-- price_line_no: Row of that file, counted as in a spreadsheet: the header is row 1.
SELECT
    'floor_breach' AS rule,
    6 AS rule_version,
    mart.subject_key(
        rule,
        mart.price_subject(
            held.source,
            held.property_id,
            held.market,
            held.check_in,
            held.nights,
            held.party,
            held.currency,
            held.room_id,
            held.board_id,
            held.policy_key,
            held.channel
        )
    ) AS subject_key,
    mart.flag_id(rule, subject_key) AS flag_id,
    mart.severity(held.below_floor_pct, analysis.medium_pct, analysis.high_pct) AS severity,
    held.below_floor_pct AS size_pct,
    held.below_floor AS amount,
    held.source,
    held.property_id,
    held.market,
    held.product_type,
    held.check_in,
    held.nights,
    held.party,
    held.floor_currency AS currency,
    held.match_grade,
    held.room_id,
    held.board_id,
    held.policy_key,
    held.channel,
    held.floor,
    held.price_converted AS price,
    held.currency AS price_currency,
    held.observed_at,
    held.days_apart,
    held.input_id AS price_input_id,
    held.line_no AS price_line_no,
    format(
        'Sold at {:,.2f} {} on {}, {}{:.1f}% below the floor of {:,.2f}{} ({}).',
        held.price::DOUBLE,
        held.currency,
        strftime(mart.utc(held.observed_at), '%-d %B'),
        CASE
            WHEN held.currency <> held.floor_currency
                THEN
                    format(
                        '{:,.2f} {} at the reference rate: ',
                        held.price_converted::DOUBLE,
                        held.floor_currency
                    )
            ELSE ''
        END,
        held.below_floor_pct,
        held.floor::DOUBLE,
        -- Only where the evidence shows it: of a floor that rose, it has the answer before alone.
        CASE
            WHEN held.floor_next < held.floor_before
                THEN format(' in the next answer, {:,.2f} in the one before', held.floor_before::DOUBLE)
            WHEN held.floor_now <> held.floor AND held.days_apart = 0 THEN ' of that day'
            ELSE ''
        END
        || CASE
            WHEN held.floor_now <> held.floor THEN format('; the floor is now {:,.2f}', held.floor_now::DOUBLE)
            ELSE ''
        END,
        replace(held.match_grade, '_', ' ')
    ) AS finding,
    CASE
        WHEN held.floor_now <> held.floor THEN held.sightings || held.sightings_now
        ELSE held.sightings
    END AS evidence,
    mart.conversion(held.currency, held.floor_currency, held.rate, held.rate_date) AS fx
FROM mart.price_against_floor AS held
CROSS JOIN ref.analysis AS analysis
WHERE held.verdict = 'breach'
