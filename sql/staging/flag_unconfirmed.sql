-- One row per piece of evidence of each open flag that tonight's findings do not confirm.
SELECT
    before.flag_id,
    before.rule,
    before.market,
    before.product_type,
    before.size_pct,
    before.amount,
    before.fx,
    before.last_flagged_at,
    before.evidence[1].sweep_id AS compared_sweep_id,
    before.evidence[1].source AS compared_source,
    list_filter(before.evidence, LAMBDA seen: seen['role'] = 'compared')[1] AS compared,
    unnest(before.evidence) AS item
FROM state.flag_open AS before
ANTI JOIN night.finding AS finding ON finding.flag_id = before.flag_id
-- A rule that could not be evaluated says nothing about its flags.
ANTI JOIN night.failed_rule AS failed ON failed.relation = before.relation
