-- One row per open price disparity that is not found again, and whose price is right beside the others in its evidence.
-- It is right if it is level with all of them tonight, or beyond them in the other direction. Only prices of the
-- finding's source, in one currency, that were answered tonight are compared; the reference market may sell none.
-- is_changed: TRUE: that price has changed since the finding was last flagged; FALSE: the others moved.
SELECT
    flag.flag_id,
    bool_or(offer.valid_from > flag.last_flagged_at) FILTER (WHERE offer.market = flag.flag_market) AS is_changed
FROM (
    SELECT
        before.flag_id,
        before.market AS flag_market,
        before.size_pct,
        before.last_flagged_at,
        before.evidence[1].source AS flag_source,
        unnest(before.evidence) AS seen
    FROM state.flag_open AS before
    ANTI JOIN night.found AS found
        ON
            found.rule = before.rule
            AND found.subject_key = before.subject_key
            AND sign(found.size_pct) = sign(before.size_pct)
    WHERE before.rule = 'market_disparity'
) AS flag
CROSS JOIN night.sweep AS sweep
CROSS JOIN ref.analysis AS analysis
INNER JOIN state.offer_open AS offer
    ON
        offer.source = flag.seen.source
        AND offer.property_id = flag.seen.property_id
        AND offer.offer_key = flag.seen.offer_key
WHERE
    flag.seen.source = flag.flag_source
    AND offer.is_offered
    AND offer.seen_sweep_id = sweep.sweep_id
GROUP BY flag.flag_id, offer.currency
HAVING
    CASE
        WHEN any_value(flag.size_pct) > 0
            THEN
                max(offer.total::DOUBLE) FILTER (WHERE offer.market = flag.flag_market)
                <= min(offer.total::DOUBLE) FILTER (WHERE offer.market <> flag.flag_market)
                * (1 + any_value(greatest(analysis.disparity_pct, analysis.tolerance_pct)) / 100)
        ELSE
            min(offer.total::DOUBLE) FILTER (WHERE offer.market = flag.flag_market)
            >= max(offer.total::DOUBLE) FILTER (WHERE offer.market <> flag.flag_market)
            * (1 - any_value(greatest(analysis.disparity_pct, analysis.tolerance_pct)) / 100)
    END
