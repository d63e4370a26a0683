-- One observation of the evidence of a finding, with its role; offer_key and offer_no: NULL where nothing was offered.
CREATE OR REPLACE MACRO mart.observation(role, source, property_id, offer_key, sweep_id, search_id, offer_no) AS {
    'role': role::VARCHAR,
    'source': source::VARCHAR,
    'property_id': property_id::BIGINT,
    'offer_key': offer_key::BIGINT,
    'sweep_id': sweep_id::VARCHAR,
    'search_id': search_id::BIGINT,
    'offer_no': offer_no::INTEGER
}
