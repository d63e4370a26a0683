"""Properties in doubt: which of them to request again, by what is known from earlier nights."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict

import duckdb
import pyarrow as pa

from pipeline.domain.errors import NightauditError
from pipeline.domain.search import Search
from pipeline.lake import Lake
from pipeline.lake.database import open_published
from pipeline.normalise.request import asked_of_search

# More parts than the night before have no id, and a property that was on sale then is missing: one of them may be its
# part. Properties that were in doubt for the earlier parts are requested too, so that each part is accounted for.
_WORTH_ASKING = """
SELECT asked.search_id, asked.property_id
FROM asked
INNER JOIN mart.cell_latest AS cell
    ON
        cell.operation = 'multi'
        AND cell.property_id = asked.property_id
        AND cell.market = asked.market
        AND cell.product_type = asked.product_type
        AND cell.check_in = asked.check_in
        AND cell.nights = asked.nights
        AND cell.party = asked.party
        AND cell.currency_asked IS NOT DISTINCT FROM asked.currency
WHERE cell.known_status = 'offered' OR cell.parts_in_doubt > 0
QUALIFY
    asked.parts > max(cell.parts_in_doubt) OVER (PARTITION BY asked.search_id)
    AND bool_or(cell.known_status = 'offered' AND cell.parts_in_doubt = 0) OVER (PARTITION BY asked.search_id)
ORDER BY ALL
"""
_ASKED = pa.schema(
    [
        ("search_id", pa.int64()),
        ("parts", pa.int64()),
        ("property_id", pa.int64()),
        ("market", pa.string()),
        ("product_type", pa.string()),
        ("check_in", pa.date32()),
        ("nights", pa.int64()),
        ("party", pa.string()),
        ("currency", pa.string()),
    ]
)


def worth_asking(lake: Lake, doubts: Mapping[Search, int]) -> dict[int, tuple[int, ...]]:
    """Return the properties to request again, by search id.

    `doubts` are searches with the properties that their answers do not list, and the number of parts without an id.
    Parts that come every night hide nothing that was known, so they cost no request, even if a supplier never states
    an id. Nothing is requested again while nothing is published: no property is known to be missing then, and
    requesting each one that is not listed would cost up to a hundred requests per answer. Their cells are `absent`,
    which says that the answer did not list them, not what is on sale; `reject` holds the parts.
    """
    rows = [
        {"search_id": search.id, "parts": parts, "property_id": property_id} | asked
        for search, parts in doubts.items()
        for asked in [asdict(asked_of_search(search))]
        for property_id in search.property_ids
    ]
    if not rows or not lake.published_file.exists():
        return {}
    found: defaultdict[int, tuple[int, ...]] = defaultdict(tuple)
    try:
        with open_published(lake.published_file) as session:
            session.register("asked", pa.Table.from_pylist(rows, schema=_ASKED))
            for search_id, property_id in session.execute(_WORTH_ASKING).fetchall():
                found[search_id] += (property_id,)
    except (NightauditError, duckdb.Error):
        # They stay in doubt. The next publication reports what is wrong with the published file.
        return {}
    return dict(found)
