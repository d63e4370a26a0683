-- Stable key of a cell: the first 63 bits of the MD5 of all that was requested, the same for every operation.
CREATE OR REPLACE MACRO mart.cell_key(
    property_id, market, product_type, check_in, nights, party, currency_asked
) AS (
    md5_number_lower(
        concat_ws('|', property_id, market, product_type, check_in, nights, party, coalesce(currency_asked, '~'))
    ) >> 1
)::BIGINT
