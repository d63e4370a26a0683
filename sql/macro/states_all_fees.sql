-- Whether the excluded charges of an answer are the sum of the mandatory fees that it states: none is left unstated.
-- Each fee that it states may be rounded by a minor unit of the currency.
CREATE OR REPLACE MACRO mart.states_all_fees(
    excluded_charges, resort_fee, child_resort_fee, city_taxes, hotel_service_fee, minor_unit
) AS (
    coalesce(
        abs(
            excluded_charges
            - (
                coalesce(resort_fee, 0) + coalesce(child_resort_fee, 0) + coalesce(city_taxes, 0)
                + coalesce(hotel_service_fee, 0)
            )
        ) <= (
            (resort_fee IS NOT NULL)::INTEGER + (child_resort_fee IS NOT NULL)::INTEGER
            + (city_taxes IS NOT NULL)::INTEGER + (hotel_service_fee IS NOT NULL)::INTEGER
        ) * coalesce(minor_unit, 0.01),
        FALSE
    )
)
