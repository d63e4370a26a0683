-- One row per flag that ends with this sweep, with what was last seen of it.
SELECT
    before.*,
    ended.resolved_at,
    ended.resolved_sweep_id,
    ended.ended_by
FROM state.flag_open AS before
INNER JOIN night.flag_ended AS ended ON ended.flag_id = before.flag_id
