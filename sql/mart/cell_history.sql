-- One row per cell, operation and interval in which its answers had the same status and code.
-- known_to: Start of the sweep that saw the next status, or the day of check-in; NULL: it has not ended.
-- next_status: Status that followed: `offered`, `no_offer`, `absent` or `stay_began`; NULL: it has not ended.
-- lead_days_from: Days from the first sweep that saw it to check-in.
-- lead_days_seen: Days from the last sweep that saw it to check-in.
-- lead_days_to: Days from the sweep that saw the next status to check-in; NULL: no other status was seen.
SELECT
    history.*,
    date_diff('day', mart.utc(history.known_from)::DATE, history.check_in) AS lead_days_from,
    date_diff('day', mart.utc(history.known_seen_at)::DATE, history.check_in) AS lead_days_seen,
    CASE
        WHEN history.next_status <> 'stay_began'
            THEN date_diff('day', mart.utc(history.known_to)::DATE, history.check_in)
    END AS lead_days_to
FROM (
    SELECT * FROM state.cell_closed

    UNION ALL BY NAME

    SELECT
        cell.cell_key,
        cell.operation,
        cell.property_id,
        cell.market,
        cell.product_type,
        cell.check_in,
        cell.nights,
        cell.party,
        cell.known_status,
        cell.known_code,
        cell.known_from,
        cell.known_seen_at,
        cell.spells
    FROM state.cell AS cell
    WHERE cell.known_status IS NOT NULL
) AS history
