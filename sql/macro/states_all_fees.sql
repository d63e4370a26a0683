-- Whether the excluded charges of an answer are the sum of the mandatory fees that it states: none is left unstated.
CREATE OR REPLACE MACRO mart.states_all_fees(
    excluded_charges, resort_fee, child_resort_fee, city_taxes, hotel_service_fee
) AS (
    coalesce(
        excluded_charges = coalesce(resort_fee, 0) + coalesce(child_resort_fee, 0) + coalesce(city_taxes, 0)
        + coalesce(hotel_service_fee, 0),
        FALSE
    )
)
