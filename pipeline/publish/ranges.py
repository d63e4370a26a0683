"""The ranges of properties by which a night is published."""

from dataclasses import dataclass

import duckdb

from pipeline.domain.property_range import ALL, PropertyRange, cut

# Offers of a range, tonight's plus those on sale before: as wide rows they fit into a process of 700 MB.
MOST_OFFERS = 500_000
# Twice as many are still one range: two processes would spend more on starting, and on planning the same queries, than
# they gain.
_ALONE = 2
# Up to this share of them, a session with enumerations takes longer to open than it saves.
_FEW = 0.6


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of a night, which together hold every id there is, and the ids of its properties.

    `is_small`: the session that builds the published file computes the night.
    """

    ranges: tuple[PropertyRange, ...]
    properties: tuple[int, ...]
    is_small: bool


def choose_ranges(session: duckdb.DuckDBPyConnection, most_offers: int) -> Ranges:
    """Cut the properties of a night and of the state before it into ranges of at most this many offers.

    A night of at most twice as many is one range. A property is never cut: one with more offers is a range of its own.
    """
    found = session.execute(
        """
        SELECT property_id, sum(offers) AS offers
        FROM (
            SELECT property_id, count(*) AS offers FROM sweep_files.offer GROUP BY property_id
            UNION ALL
            SELECT property_id, count(*) AS offers FROM state.offer_open GROUP BY property_id
            UNION ALL
            SELECT property_id, count(*) / 8 AS offers FROM sweep_files.cell GROUP BY property_id
        )
        GROUP BY property_id
        ORDER BY property_id
        """
    ).fetchall()
    offers = sum(of_property for _, of_property in found)
    ranges = (ALL,) if offers <= _ALONE * most_offers else tuple(cut(found, most_offers))
    return Ranges(ranges, tuple(property_id for property_id, _ in found), offers <= _FEW * most_offers)
