-- What the other files of this folder call: chance by seed, days, and how values are written.
CREATE OR REPLACE MACRO drawn(what, of_what, below) AS (
    (hash(concat_ws('/', getvariable('seed'), what, of_what)) % below)::INTEGER
);
CREATE OR REPLACE MACRO day_of(night) AS (getvariable('first_day') + night::INTEGER)::DATE;
CREATE OR REPLACE MACRO night_of(day) AS date_diff('day', getvariable('first_day'), day)::INTEGER;
CREATE OR REPLACE MACRO started_at(night) AS (
    day_of(night)::TIMESTAMP AT TIME ZONE 'UTC' + INTERVAL 150 MINUTE
);
CREATE OR REPLACE MACRO sweep_id(night) AS strftime(started_at(night), '%Y%m%dT%H%M%SZ') || '-5eed00';
CREATE OR REPLACE MACRO money(cents) AS (cents::DECIMAL(18, 4) / 100)::DECIMAL(18, 4);
CREATE OR REPLACE MACRO excluded_cents(resort_cents, city_cents) AS (
    coalesce(resort_cents, 0) + coalesce(city_cents, 0)
);
CREATE OR REPLACE MACRO included_charges(total_cents, tax_pct) AS money(total_cents * tax_pct // (100 + tax_pct));
CREATE OR REPLACE MACRO hours_before(check_in, hours) AS (
    check_in::TIMESTAMP AT TIME ZONE 'UTC' + to_hours(15 - hours)
);
CREATE OR REPLACE MACRO free_cancel_until(source, check_in, hours) AS (
    CASE WHEN source = 'detail' THEN hours_before(check_in, hours) END
);
CREATE OR REPLACE MACRO product_id(offer_key, is_passing, night) AS (
    offer_key // 1024 + CASE WHEN is_passing THEN night ELSE 0 END
);
