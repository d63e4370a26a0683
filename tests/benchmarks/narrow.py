"""How little a night could cost: keys, history, state, exact pairs and a summary, in ranges of property ids.

A prototype to compare publishing with: the minimum that it must do, in the shortest way. Only the key, a hash of the
values and where the row lies are compared; wide rows are fetched for what changed. It knows no cells that failed, no
findings and no readers.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import duckdb

from pipeline.domain.texts import literal

_SETTINGS = "SET TimeZone = 'UTC'; SET threads = 2; SET memory_limit = '600MB'; SET preserve_insertion_order = false"
# An md5 stays the same between versions of DuckDB, which a stored key must; values are only compared within one.
_NARROW = """
CREATE OR REPLACE TABLE tonight AS
SELECT
    property_id, market, check_in, currency, total, search_id, offer_no,
    hash(property_id, product_type, check_in, nights, party, room_stay_id, room_id, board_id, policy_key) AS match_key,
    (md5_number_lower(concat_ws('|', source, property_id, market, product_type, check_in, nights, party,
        coalesce(currency_asked, '~'), coalesce(room_stay_id, -1), room_id, board_id, policy_key,
        coalesce(currency, '~'))) >> 1)::BIGINT AS offer_key,
    hash(total, pre_promo_total, discount_pct, floor, available_rooms, promotion_key) AS value_hash
FROM read_parquet({night}) WHERE property_id BETWEEN {low} AND {high}
"""
_CHANGE = """
CREATE OR REPLACE TABLE change AS
SELECT coalesce(new.offer_key, old.offer_key) AS offer_key, new.search_id, new.offer_no
FROM tonight AS new FULL JOIN read_parquet({state}) AS old USING (offer_key)
WHERE new.value_hash IS DISTINCT FROM old.value_hash
"""
_HISTORY = """
SELECT offer.* FROM read_parquet({night}) AS offer SEMI JOIN change USING (search_id, offer_no)
WHERE property_id BETWEEN {low} AND {high} ORDER BY property_id, check_in
"""
_STATE = "SELECT property_id, offer_key, value_hash, search_id, offer_no FROM tonight ORDER BY property_id, offer_key"
_PAIR = """
SELECT one.property_id, one.market, other.market AS reference, one.currency, one.check_in, one.offer_key,
    other.offer_key AS reference_key, one.total / other.total - 1 AS difference
FROM tonight AS one INNER JOIN tonight AS other USING (match_key, currency)
WHERE one.market > other.market AND other.total > 0 ORDER BY one.property_id
"""
_SUMMARY = """
SELECT market, reference, currency, count(*), avg(difference), quantile_cont(difference, 0.5)
FROM read_parquet({pairs}) GROUP BY ALL
"""


def narrow_night(before: Path, night: Path, ranges: int, folder: Path) -> Callable[[], float]:
    """Make the state of the night before, uncounted; the work is the night itself, and returns its number of offers."""
    folder.mkdir(parents=True, exist_ok=True)
    session = duckdb.connect(":memory:")
    session.execute(_SETTINGS)
    session.execute(f"SET temp_directory = {literal(str(folder / 'scratch'))}")
    bounds = _bounds(session, before, ranges)
    for number, (low, high) in enumerate(bounds):
        session.execute(_NARROW.format(night=_files(before), low=low, high=high))
        _copy(session, _STATE, folder / f"before-{number}")

    def work() -> float:
        offers = 0
        for number, (low, high) in enumerate(bounds):
            here = {"night": _files(night), "low": low, "high": high}
            session.execute(_NARROW.format(**here))
            session.execute(_CHANGE.format(state=literal(f"{folder}/before-{number}.parquet")))
            _copy(session, _HISTORY.format(**here), folder / f"history-{number}")
            _copy(session, _STATE, folder / f"state-{number}")
            _copy(session, _PAIR, folder / f"pair-{number}")
            offers += session.execute("SELECT count(*) FROM tonight").fetchall()[0][0]
        session.execute(_SUMMARY.format(pairs=literal(f"{folder}/pair-*.parquet"))).fetchall()
        return offers

    return work


def _files(night: Path) -> str:
    return literal(f"{night}/*.parquet")


def _bounds(session: duckdb.DuckDBPyConnection, night: Path, ranges: int) -> list[tuple[int, int]]:
    """Cut the property ids into ranges, each with as many properties as the others, that leave none out."""
    query = f"SELECT DISTINCT property_id FROM read_parquet({_files(night)}) ORDER BY 1"
    ids = [row[0] for row in session.execute(query).fetchall()]
    starts = [-(2**63), *(ids[len(ids) * number // ranges] for number in range(1, ranges)), 2**63 - 1]
    return [(low, high - 1) for low, high in pairwise(starts)]


def _copy(session: duckdb.DuckDBPyConnection, query: str, file: Path) -> None:
    session.execute(f"COPY ({query}) TO {literal(f'{file}.parquet')} (FORMAT parquet, COMPRESSION zstd)")
