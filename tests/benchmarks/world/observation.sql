-- One row per series of a batch and night whose cell was answered: what the answer stated. Money in cents.
WITH priced AS (
    SELECT
        series.series_no,
        series.cell_no,
        cell_night.night,
        NOT (
            cell_night.is_absent
            OR room_night.is_sold_out
            OR (cell_night.night + series.churn_phase) % 200 < series.nights_away
        ) AS is_offered,
        CASE WHEN series.takes_promotions THEN room_night.promotion_pct ELSE 0 END AS reduced_pct,
        (series.level_cents * room_night.level_pct / 100)::BIGINT AS full_cents,
        CASE
            WHEN series.has_phantoms THEN full_cents ELSE full_cents * (100 - reduced_pct) // 100
        END AS reduced_cents,
        CASE
            WHEN series.has_floor AND series.eats_promotions THEN full_cents
            WHEN series.has_floor THEN reduced_cents * room_night.floor_pct // 100
        END AS least_cents,
        room_night.available_rooms AS rooms_left
    FROM series
    INNER JOIN cell_night ON cell_night.cell_no = series.cell_no
    INNER JOIN room_night
        ON
            room_night.property_no = series.property_no
            AND room_night.room_no = series.room_no
            AND room_night.check_in = series.check_in
            AND room_night.nights = series.nights
            AND room_night.night = cell_night.night
    WHERE cell_night.outcome = 'answered'
)

SELECT
    series_no,
    cell_no,
    night,
    is_offered,
    CASE WHEN is_offered THEN reduced_cents END AS total_cents,
    CASE WHEN is_offered AND reduced_pct > 0 THEN full_cents END AS pre_promo_cents,
    CASE WHEN is_offered THEN reduced_pct END AS promotion_pct,
    CASE WHEN is_offered THEN least_cents END AS floor_cents,
    CASE WHEN is_offered THEN rooms_left END AS available_rooms,
    hash(total_cents, pre_promo_cents, promotion_pct, floor_cents, available_rooms) AS state
FROM priced
