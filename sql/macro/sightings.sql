-- Observations of several rooms of an offer when they were last seen, as evidence with one role.
CREATE OR REPLACE MACRO mart.sightings(role, source, rooms) AS (
    list_transform(
        rooms,
        LAMBDA room: mart.observation(
            role,
            source,
            room['property_id'],
            room['offer_key'],
            room['seen_sweep_id'],
            room['seen_search_id'],
            room['seen_offer_no']
        )
    )
)
