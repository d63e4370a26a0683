"""The ranges of properties by which a night is published."""

import duckdb

from pipeline.domain.property_range import ALL, PropertyRange, cut

# Offers of a range, tonight's plus those on sale before: as wide rows they fit into a process of 700 MB.
MOST_OFFERS = 500_000
# Twice as many are still one range: two processes would spend more on starting, and on planning the same queries, than
# they gain.
_ALONE = 2


def choose_ranges(session: duckdb.DuckDBPyConnection, most_offers: int) -> tuple[list[PropertyRange], list[int]]:
    """Cut the properties of a night and of the state before it into ranges of at most this many offers.

    A night of at most twice as many is one range. A property is never cut: one with more offers is a range of its own.
    Together the ranges hold every id there is. Returns the ranges and the ids of the properties.
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
    is_small = sum(offers for _, offers in found) <= _ALONE * most_offers
    return [ALL] if is_small else cut(found, most_offers), [property_id for property_id, _ in found]
