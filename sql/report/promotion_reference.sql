-- One row per finding: an offer on sale whose price before promotions is not supported by its own history.
-- size_pct: Distance of the price before promotions above the compared price, in percent; evergreen: depth_pct.
-- amount: The same distance in currency; evergreen: the discount.
-- evidence: First and last observation, last without the promotion, first with it, and the compared one.
WITH judged AS (
    SELECT
        reference.*,
        unnest(
            [
                CASE
                    WHEN reference.reference_verdict = 'never_charged' THEN 'reference_never_charged'
                    WHEN reference.reference_verdict = 'above_lowest' THEN 'reference_above_lowest'
                END,
                CASE
                    WHEN reference.plain_seen_at IS NULL AND reference.history_days >= analysis.reference_days
                        THEN 'evergreen_promotion'
                END
            ]
        ) AS rule,
        analysis.reference_days,
        analysis.medium_pct,
        analysis.high_pct
    FROM mart.reference_price AS reference
    CROSS JOIN ref.analysis AS analysis
    WHERE
        reference.history_days >= analysis.reference_days
        -- What it cost while it was not observed is unknown.
        AND reference.longest_unseen_days < analysis.reference_days
),

found AS (
    SELECT
        judged.*,
        CASE judged.rule
            WHEN 'reference_never_charged' THEN judged.highest_moved
            WHEN 'reference_above_lowest' THEN judged.lowest_moved
            ELSE judged.total
        END AS held_against,
        CASE judged.rule
            WHEN 'reference_never_charged' THEN judged.highest_from
            WHEN 'reference_above_lowest' THEN judged.lowest_from
        END AS held_from,
        CASE judged.rule
            WHEN 'evergreen_promotion' THEN judged.depth_pct
            ELSE 100 * (judged.pre_promo_total::DOUBLE / held_against::DOUBLE - 1)
        END AS size_pct
    FROM judged
    WHERE judged.rule IS NOT NULL
),

observed AS (
    SELECT
        found.rule,
        found.source,
        found.property_id,
        found.offer_key,
        history.valid_from,
        history.last_seen_at,
        history.began_sweep_id,
        history.began_search_id,
        history.began_offer_no,
        history.seen_sweep_id,
        history.seen_search_id,
        history.seen_offer_no,
        history.last_seen_at = found.plain_seen_at AS is_plain,
        history.valid_from = found.held_from AS is_held,
        history.valid_from = found.first_seen_at AS is_first,
        history.valid_from = found.began_at AS is_beginning
    FROM found
    INNER JOIN mart.offer_history AS history
        ON
            history.source = found.source
            AND history.property_id = found.property_id
            AND history.offer_key = found.offer_key
),

proved AS (
    SELECT
        observed.rule,
        observed.source,
        observed.property_id,
        observed.offer_key,
        list(
            mart.observation(
                CASE
                    WHEN observed.is_held THEN 'held_against'
                    WHEN observed.is_first THEN 'first'
                    ELSE 'promotion_began'
                END,
                observed.source,
                observed.property_id,
                observed.offer_key,
                observed.began_sweep_id,
                observed.began_search_id,
                observed.began_offer_no
            ) ORDER BY observed.valid_from
        ) FILTER (WHERE observed.is_held OR observed.is_first OR observed.is_beginning)
        || coalesce(
            list(
                mart.observation(
                    CASE WHEN observed.is_held THEN 'held_against' ELSE 'plain' END,
                    observed.source,
                    observed.property_id,
                    observed.offer_key,
                    observed.seen_sweep_id,
                    observed.seen_search_id,
                    observed.seen_offer_no
                ) ORDER BY observed.valid_from
            ) FILTER (WHERE (observed.is_held OR observed.is_plain) AND observed.last_seen_at > observed.valid_from),
            []
        ) AS evidence
    FROM observed
    GROUP BY observed.rule, observed.source, observed.property_id, observed.offer_key
)

SELECT
    found.rule,
    11 AS rule_version,
    mart.subject_key(found.rule, concat_ws('|', found.source, found.property_id, found.offer_key)) AS subject_key,
    mart.flag_id(found.rule, subject_key) AS flag_id,
    mart.severity(found.size_pct, found.medium_pct, found.high_pct) AS severity,
    found.size_pct,
    (found.pre_promo_total - found.held_against)::DECIMAL(18, 4) AS amount,
    found.source,
    found.property_id,
    found.market,
    found.product_type,
    found.check_in,
    found.nights,
    found.party,
    found.currency,
    CASE found.rule
        WHEN 'reference_never_charged'
            THEN
                format(
                    'The price before promotions of {:,.2f} {} is {:.1f}% above the highest total seen in {} days, '
                    || '{:,.2f}{}: an indicator, not proof.',
                    found.pre_promo_total::DOUBLE, found.currency, found.size_pct, found.history_days,
                    found.highest::DOUBLE,
                    CASE
                        WHEN round(found.highest_moved, 2) <= round(found.highest, 2) THEN ''
                        ELSE
                            format(
                                ', raised to {:,.2f} as prices of its market have risen since{}',
                                found.highest_moved::DOUBLE,
                                CASE
                                    WHEN round(found.moved_pct, 1) > 0
                                        THEN format(' by about {:.1f}%', found.moved_pct)
                                    ELSE ''
                                END
                            )
                    END
                )
        WHEN 'reference_above_lowest'
            THEN
                format(
                    'The price before promotions of {:,.2f} {} is {:.1f}% above the lowest total seen in the {} days '
                    || 'before the promotion, {:,.2f} (allowing for rises of its market''s prices since); the offer '
                    || 'was watched for {} days before it.{}',
                    found.pre_promo_total::DOUBLE, found.currency, found.size_pct, found.reference_days,
                    found.lowest_moved::DOUBLE, found.days_before,
                    CASE
                        -- Many others rose too: worth knowing before a call.
                        WHEN found.risen_since_lowest_pct BETWEEN 20 AND 50
                            THEN
                                format(
                                    ' {:.0f}% of its market''s prices have risen since: too few for a rise of the '
                                    || 'market.',
                                    found.risen_since_lowest_pct
                                )
                        ELSE ''
                    END
                )
        ELSE
            format(
                'Never seen without a promotion in {} days; now {:,.2f} instead of {:,.2f} {}.',
                found.history_days, found.total::DOUBLE, found.pre_promo_total::DOUBLE, found.currency
            )
    END AS finding,
    list_append(
        proved.evidence,
        mart.observation(
            'offer',
            found.source,
            found.property_id,
            found.offer_key,
            found.seen_sweep_id,
            found.seen_search_id,
            found.seen_offer_no
        )
    ) AS evidence,
    mart.conversion(NULL, NULL, NULL, NULL) AS fx,
    found.offer_key,
    found.room_id,
    found.board_id,
    found.policy_key,
    found.total,
    found.pre_promo_total,
    found.depth_pct,
    found.began_at,
    found.history_days,
    found.days_before,
    found.lowest_before,
    found.highest,
    found.moved_pct,
    found.moved_since_lowest_pct,
    found.promoted_share_pct,
    found.highest_moved,
    found.lowest_moved
FROM found
INNER JOIN proved
    ON
        proved.rule = found.rule
        AND proved.source = found.source
        AND proved.property_id = found.property_id
        AND proved.offer_key = found.offer_key
