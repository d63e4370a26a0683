-- One row: counts of the cells, searches and requests of one sweep, by outcome.
SELECT
    cells.*,
    searches.*
FROM (
    SELECT
        count(*) AS planned,
        count(*) FILTER (WHERE status = 'offered') AS offered,
        count(*) FILTER (WHERE status = 'no_offer') AS no_offer,
        count(*) FILTER (WHERE status = 'absent') AS absent,
        count(*) FILTER (WHERE status = 'rejected') AS rejected,
        count(*) FILTER (WHERE status = 'failed') AS failed,
        count(*) FILTER (WHERE status = 'not_swept') AS not_swept
    FROM sweep_files.cell
) AS cells
CROSS JOIN (
    SELECT
        count(*) AS searches,
        coalesce(sum(attempts), 0)::BIGINT AS requests,
        coalesce(sum(offers), 0)::BIGINT AS offers,
        coalesce(sum(rejects), 0)::BIGINT AS rejects,
        coalesce(sum(wire_bytes), 0)::BIGINT AS wire_bytes
    FROM sweep_files.search
) AS searches
