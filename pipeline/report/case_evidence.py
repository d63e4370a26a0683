"""The evidence on the page of a case: its best findings, the answers that each rests on, and their raw records.

It is read from the tables by the sweeps and searches in the findings; every raw record shown is compared with the
SHA-256 of what was loaded.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import duckdb
import polars as pl

from pipeline.domain.errors import NightauditError
from pipeline.domain.tables import CELL, OFFER, PENALTY, PROMOTION, SEARCH
from pipeline.lake import Lake
from pipeline.lake.database import rows_of, select_files
from pipeline.lake.pulled import pulled_from
from pipeline.lake.raw import RawRecord, read_shard
from pipeline.lake.raw_answer import Evidence, evidence_at
from pipeline.lake.sweep_files import sweep_files
from pipeline.report.case_prices import SellingPrice, selling_prices

Row = Mapping[str, Any]

# Roles of the subject of a finding, and of what it is compared with, the best first.
_SUBJECTS = ("market", "currency", "detail", "package", "better_room", "floor", "offer", "without_offer")
_AGAINST = (
    "compared", "reference", "base_currency", "list", "hotel", "lesser_room", "held_against", "first", "floor_before",
    "floor_began", "last_offer",
)  # fmt: skip
# Further answers of a finding that are listed.
_LISTED = 6


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one search about a finding's subject.

    `offer` is None if there is none, or it is no longer kept; `raw` is None for the reason in `lost`.
    """

    role: str
    search: Row | None
    offer: Row | None
    status: Row | None
    penalties: Sequence[Row]
    promotions: Sequence[Row]
    raw: Evidence | None = None
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A finding of a case with the one or two answers that show it, and further evidence."""

    flag: Row
    answers: Sequence[Answer]
    others: Sequence[Answer]
    more: int
    price: SellingPrice | None
    """The selling price in the finding, for rules about prices."""


def pieces(session: duckdb.DuckDBPyConnection, lake: Lake, flag_ids: Iterable[str]) -> dict[str, Piece]:
    """Return findings with their evidence, by id: as they are, or as they were when they ended the last time."""
    flags = _flags(session, set(flag_ids))
    chosen = {flag["flag_id"]: _chosen(flag["evidence"]) for flag in flags}
    shown_items = [item for main, _ in chosen.values() for item in main]
    tables = _Tables(session, lake, shown_items, [item for _, others in chosen.values() for item in others[:_LISTED]])
    records_of = lru_cache(maxsize=2)(read_shard)
    # Answers of one shard are adjacent, so that each shard is read once.
    shown = sorted({_place(item) for item in shown_items})
    addressed = sorted((search["raw_address"], place) for place in shown if (search := tables.search.get(place)))
    raw = {place: _raw(lake, address, tables.search[place], records_of) for address, place in addressed}
    prices = selling_prices(session, lake, flags)
    made = {}
    for flag in flags:
        main, others = chosen[flag["flag_id"]]
        made[flag["flag_id"]] = Piece(
            flag,
            [
                tables.answer(item, *raw.get(_place(item), (None, "The tables no longer have its search.")))
                for item in main
            ],
            [tables.answer(item) for item in others[:_LISTED]],
            len(others[_LISTED:]),
            prices.get(flag["flag_id"]),
        )
    return made


def _flags(session: duckdb.DuckDBPyConnection, ids: set[str]) -> Sequence[Row]:
    # Those that have ended are looked for only if there are any: they are many.
    query = "SELECT * FROM report.flag WHERE list_contains($ids::VARCHAR[], flag_id)"
    found = rows_of(session.execute(query, {"ids": sorted(ids)}))
    ended = ids - {flag["flag_id"] for flag in found}
    if ended:
        query = (
            "SELECT * FROM report.flag_history WHERE list_contains($ids::VARCHAR[], flag_id) "
            "QUALIFY row_number() OVER (PARTITION BY flag_id ORDER BY first_flagged_at DESC) = 1"
        )
        found = [*found, *rows_of(session.execute(query, {"ids": sorted(ended)}))]
    return found


def _chosen(evidence: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the observation that a finding is about with the one that it is compared with, and all others."""
    subject = next((item for role in _SUBJECTS for item in reversed(evidence) if item["role"] == role), evidence[-1])
    against = next((item for role in _AGAINST for item in reversed(evidence) if item["role"] == role), None)
    compared = [item for item in evidence if item["role"] == "market"]
    if len(compared) > 1 and against is not None:
        # Several markets agree and the reference market deviates, so the finding is about the reference market.
        subject, against = against, compared[0]
    main = [subject, *([against] if against is not None and against is not subject else [])]
    places = [(_place(item), item["offer_no"]) for item in main]
    return main, [item for item in evidence if (_place(item), item["offer_no"]) not in places]


def _offers_of(items: Sequence[Row]) -> list[tuple[str, int, int]]:
    return [(*_place(item), item["offer_no"]) for item in items if item["offer_no"] is not None]


def _place(item: Row) -> tuple[str, int]:
    return item["sweep_id"], item["search_id"]


class _Tables:
    """The rows of the tables that some observations refer to."""

    def __init__(
        self, session: duckdb.DuckDBPyConnection, lake: Lake, shown: Sequence[Row], listed: Sequence[Row]
    ) -> None:
        self._session, self._lake = session, lake
        items = [*shown, *listed]
        self.search = {_place(row): row for row in self._of(SEARCH.name, [(*_place(item), None) for item in items])}
        self._offer = {(*_place(row), row["offer_no"]): row for row in self._of(OFFER.name, _offers_of(items))}
        self._parts: dict[str, dict[tuple[str, int, int], list[Row]]] = {}
        for name, order in ((PENALTY.name, "penalty_no"), (PROMOTION.name, "promotion_no")):
            held = self._parts[name] = defaultdict(list)
            for row in sorted(self._of(name, _offers_of(shown)), key=lambda row: row[order]):
                held[*_place(row), row["offer_no"]].append(row)
        without = [(*_place(item), item["property_id"]) for item in items if item["offer_no"] is None]
        self._cell = {(*_place(row), row["property_id"]): row for row in self._of(CELL.name, without, "property_id")}

    def answer(self, item: Row, raw: Evidence | None = None, lost: str = "") -> Answer:
        place, offer = _place(item), (*_place(item), item["offer_no"])
        return Answer(
            item["role"],
            self.search.get(place),
            self._offer.get(offer),
            self._cell.get((*place, item["property_id"])),
            self._parts[PENALTY.name].get(offer, ()),
            self._parts[PROMOTION.name].get(offer, ()),
            raw,
            lost,
        )

    def _of(self, table: str, wanted: Iterable[tuple[str, int, int | None]], third: str = "offer_no") -> Sequence[Row]:
        """Return the rows of a table by sweep, search and, if given, a third column."""
        keys = pl.DataFrame(
            list(wanted), schema={"sweep_id": pl.String, "search_id": pl.Int64, third: pl.Int64}, orient="row"
        ).unique()
        if keys.is_empty():
            return []
        held = sweep_files(self._lake, {each.name: each for each in (SEARCH, OFFER, PENALTY, PROMOTION, CELL)}[table])
        files = [file for sweep in sorted(set(keys["sweep_id"])) for file in held.get(sweep, [])]
        # With this list, DuckDB can skip parts of the files.
        searches = ", ".join(map(str, sorted(set(keys["search_id"]))))
        same = f"(wanted.{third} IS NULL OR wanted.{third} = held.{third})" if table != SEARCH.name else "true"
        self._session.register("wanted", keys.to_arrow())
        try:
            found = self._session.execute(
                f"SELECT held.* FROM ({select_files(table, files)}) AS held SEMI JOIN wanted "  # noqa: S608 - our own names, and numbers
                f"ON wanted.sweep_id = held.sweep_id AND wanted.search_id = held.search_id AND {same} "
                f"WHERE held.search_id IN ({searches})"
            )
            return rows_of(found)
        finally:
            self._session.unregister("wanted")


def _raw(
    lake: Lake, address: str, search: Row, records_of: Callable[[Lake, str, str], Sequence[RawRecord]]
) -> tuple[Evidence | None, str]:
    """Return the raw record of a search, or None and why it cannot be shown."""
    if not lake.exists(address.partition("#")[0]):
        why = "The raw answer is no longer kept (NIGHTAUDIT_RAW_NIGHTS)"
        if pulled_from(lake.root):
            why = "This copy has no raw answers"
        return None, f"{why}; the numbers come from the tables."
    try:
        return evidence_at(lake, address, records_of=records_of, loaded=(search["body_sha256"],)), ""
    except NightauditError as error:
        return None, error.message
