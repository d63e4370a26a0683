-- One row per party of the offers whose stay is in the future: its number of guests.
-- rooms: Number of rooms of the party.
-- adults: Number of adults in all rooms.
-- child_ages: Ages of the children in all rooms, in years, in the order of the party; empty: no children.
-- children: Number of children in all rooms.
-- guests: Number of adults and children in all rooms.
SELECT
    asked.party,
    length(asked.party) - length(replace(asked.party, '+', '')) + 1 AS rooms,
    list_sum(regexp_extract_all(asked.party, '(?:^|\+)(\d+)', 1)::INTEGER[])::INTEGER AS adults,
    regexp_extract_all(asked.party, '[c-](\d+)', 1)::INTEGER[] AS child_ages,
    len(child_ages)::INTEGER AS children,
    (adults + children)::INTEGER AS guests
FROM (
    SELECT DISTINCT offer.party
    FROM state.offer_open AS offer
) AS asked
