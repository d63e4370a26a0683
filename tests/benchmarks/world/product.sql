-- One row per product of a property: room, board and policy, with what is fixed about both.
SELECT
    property.*,
    room.number::INTEGER AS room_no,
    (property.property_no % 100 * 30 + (room.number * 2 + board.number) * 3 + policy.number)::INTEGER AS offer_no,
    property.property_id % 1000000007 * 10 + room.number + 1 AS room_id,
    ['Standard Double', 'Superior Double', 'Family Room', 'Junior Suite', 'Suite'][1 + room.number] AS room_name,
    board_listed.board_id,
    board_listed.board_name,
    board_listed.guest_night_cents,
    policy_listed.policy_key,
    policy_listed.refundability,
    policy_listed.free_cancel_hours,
    (100 + 13 * room.number) / 100.0 * policy_listed.factor AS factor,
    drawn('promotes', concat_ws('/', property.property_no, room.number, board.number, policy.number), 10) < 8
        AS takes_promotions
FROM property
CROSS JOIN range(5) AS room (number)
CROSS JOIN range(2) AS board (number)
CROSS JOIN range(3) AS policy (number)
INNER JOIN board AS board_listed
    ON board_listed.board_no = (drawn('board', property.property_no, 4) + board.number) % 4
INNER JOIN policy AS policy_listed
    ON policy_listed.policy_no = (drawn('policy', property.property_no, 5) + policy.number) % 5
WHERE room.number < property.rooms AND board.number < property.boards AND policy.number < property.policies
