-- What an answer that offers an offer changes: `first` seen, `back`, its `value`; NULL: nothing. before: its state.
CREATE OR REPLACE MACRO mart.change_of(
    before, total, pre_promo_total, discount_pct, floor, available_rooms, promotion_key
) AS (
    CASE
        WHEN before IS NULL THEN 'first'
        WHEN NOT before['is_offered'] THEN 'back'
        WHEN
            before['total'] IS DISTINCT FROM total
            OR before['pre_promo_total'] IS DISTINCT FROM pre_promo_total
            OR before['discount_pct'] IS DISTINCT FROM discount_pct
            OR before['floor'] IS DISTINCT FROM floor
            OR before['available_rooms'] IS DISTINCT FROM available_rooms
            OR before['promotion_key'] IS DISTINCT FROM promotion_key
            THEN 'value'
    END
)
