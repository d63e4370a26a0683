-- One row per penalty that ends before it starts, or starts more than a day after check-out.
SELECT
    penalty.market,
    penalty.property_id,
    penalty.search_id,
    penalty.offer_no,
    'from ' || penalty.start_at || ' to ' || coalesce(penalty.end_at::VARCHAR, 'no end') AS reason
FROM sweep_files.penalty AS penalty
LEFT JOIN sweep_files.search AS search ON search.search_id = penalty.search_id
WHERE
    penalty.end_at < penalty.start_at
    OR penalty.start_at > (search.check_in + (search.nights + 1) * INTERVAL 1 DAY)::TIMESTAMPTZ
