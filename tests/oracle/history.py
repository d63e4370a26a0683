"""What follows from nights of answers, one after the other: what is on sale, since when, and what was before.

An offer is gone only when its cell was answered without it, and all of the answer could be read. A cell that was not
answered changes nothing. Where a part of an answer could not be read, what it leaves out is in doubt, as is an offer
whose stay is now answered in another currency and no longer asked for in its own, whose property is not asked for at
all in its market, or whose stay was not asked for in `UNREQUESTED_DAYS`: after `UNOBSERVED_NIGHTS` days it is not taken
as on sale, though its interval stays open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from operator import itemgetter
from typing import Any

from raw_zone import Sweep

UNOBSERVED_NIGHTS = 2
UNREQUESTED_DAYS = 14
SILENT_NIGHTS = 2
PLAUSIBLE_ROOMS = 10_000
ANSWERED = {"offered", "no_offer", "absent"}
SALE = ("source", "property_id", "market", "product_type")
PLACE = ("source", "market")
STAY = ("source", "property_id", "market", "product_type", "check_in", "nights", "party")
CELL = (*STAY, "currency_asked")
OFFER = (*CELL, "room_stay_id", "room_id", "board_id", "policy", "currency")
VALUES = ("total", "pre_promo_total", "discount_pct", "floor", "available_rooms", "promotion")
NO_VALUES = dict.fromkeys(VALUES)

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass
class History:
    """The state after the nights so far."""

    open: dict[Key, Row] = field(default_factory=dict)
    closed: list[Row] = field(default_factory=list)
    cells: dict[Key, Row] = field(default_factory=dict)
    cells_closed: list[Row] = field(default_factory=list)
    floor_moves: list[Row] = field(default_factory=list)
    stock_changes: list[Row] = field(default_factory=list)
    penalties: dict[Key, list[Row]] = field(default_factory=dict)
    """Of each detail offer, as its last answer states them."""
    observed: list[dict[Key, Row]] = field(default_factory=list)
    """Of each night, the cheapest product of each offer key, with whether all was read of its answer."""
    latest: Sweep | None = None
    sales: dict[Key, Row] = field(default_factory=dict)
    """Where properties were ever on sale: when they were named last, and whether they are gone for certain."""
    sold: dict[tuple[str, str], Sweep] = field(default_factory=dict)
    """Of each source and market, the last night on which it sold anything."""
    silences: dict[tuple[str, str, datetime], datetime] = field(default_factory=dict)
    """Nights on which a market sold nothing, and did shortly before: when that was."""
    _dropped: tuple[str, dict[Key, Row]] = ("", {})

    def on_sale(self) -> list[Row]:
        """Return the offers that are taken as on sale after the last night."""
        return [row for row in self.open.values() if row["is_offered"] and not self.has_left(row)]

    def has_left(self, row: Row) -> bool:
        """Whether an offer has been in doubt for too long to be compared."""
        assert self.latest is not None
        since = row["doubted_since"]
        return since is not None and (self.latest.started_at.date() - since.date()).days >= UNOBSERVED_NIGHTS

    def dropped(self) -> dict[Key, Row]:
        """Return the offers that have been in doubt for too long, found once a night."""
        assert self.latest is not None
        if self._dropped[0] != self.latest.sweep_id:
            left = {key: row for key, row in self.open.items() if row["is_offered"] and self.has_left(row)}
            self._dropped = self.latest.sweep_id, left
        return self._dropped[1]

    def doubted(self, cell: Key) -> int:
        """Return how many parts without a property a cell was in doubt for; one that is new, as its property."""
        if cell in self.cells:
            return self.cells[cell]["parts_in_doubt"]
        place = cell[: len(SALE)]
        return max((row["parts_in_doubt"] for key, row in self.cells.items() if key[: len(SALE)] == place), default=0)

    def rank_of_old(self, cell: Key, are_fewer: bool) -> int:
        """Return how unlikely a cell that was in doubt is to be what it was in doubt for."""
        sale = self.sales.get(cell[: len(SALE)])
        if sale is None:
            return 1
        is_known = cell in self.cells and self.cells[cell]["known_status"] == "offered"
        is_lost = not sale["is_quiet"] and sale["named"] < sale["answered"]
        return 1 if (is_known or is_lost) and not are_fewer else 2

    def rank_of_new(self, cell: Key) -> int:
        """Return how unlikely a cell is a part more: it was always on sale, or is, or is not."""
        before = self.cells.get(cell)
        status = before["known_status"] if before else None
        if status == "offered":
            assert before is not None
            return 1 if before["spells"] == 1 else 2
        sale = self.sales.get(cell[: len(SALE)])
        return 2 if status is None and not (sale and sale["is_quiet"]) else 3


def key_of(row: Row, columns: tuple[str, ...]) -> Key:
    """Return what identifies a row."""
    return _values(columns)(row)


@cache
def _values(columns: tuple[str, ...]) -> Callable[[Row], Key]:
    assert len(columns) > 1
    return itemgetter(*columns)


def replayed(sweeps: list[Sweep]) -> History:
    """Return the state after some sweeps, oldest first."""
    history = History()
    for sweep in sweeps:
        add(history, sweep)
    return history


def add(history: History, sweep: Sweep) -> None:
    """Add the next sweep to the state after those before it."""
    doubtful = _doubtful(history, sweep)
    whole = _whole(sweep, doubtful)
    asked = {key_of(cell, CELL): cell for cell in sweep.cells}
    observed = _observed(sweep, whole)
    _count_rooms(history, observed)
    _add_offers(history, sweep, asked, observed, whole)
    _add_cells(history, sweep, asked, whole, doubtful)
    _note_sales(history, sweep, whole)
    _note_silences(history, sweep)
    for key, row in observed.items():
        if row["source"] == "detail":
            history.penalties[key] = sweep.penalties[row["search_id"], row["offer_no"]]
    history.observed.append(observed)
    history.latest = sweep


def _doubtful(history: History, sweep: Sweep) -> dict[Key, int]:
    """Return the cells that a part without a property may be of, with the number of such parts in their answer."""
    found = {}
    for search_id, parts in sweep.nameless.items():
        asked = {key_of(cell, CELL): cell for cell in sweep.cells if cell["search_id"] == search_id}
        doubted = {key: history.doubted(key) for key in asked}
        parts_before = max(doubted.values())
        missing = [key for key, cell in asked.items() if cell["status"] != "offered"]
        still = {key: history.rank_of_old(key, parts < parts_before) for key in missing if doubted[key]}
        fresh = {key: history.rank_of_new(key) for key in missing if not doubted[key]}
        explained = min(parts, parts_before, len(still))
        for ranks, room in ((still, explained), (fresh, parts - explained)):
            for key, rank in ranks.items():
                if sum(other < rank for other in ranks.values()) < room:
                    found[key] = parts
    return found


def _whole(sweep: Sweep, doubtful: dict[Key, int]) -> set[Key]:
    """Return the cells whose answers say all: what is on sale, and what is not."""
    return {
        key_of(cell, CELL)
        for cell in sweep.cells
        if cell["status"] in ANSWERED
        and (cell["search_id"], cell["property_id"]) not in sweep.unread
        and key_of(cell, CELL) not in doubtful
    }


def _note_sales(history: History, sweep: Sweep, whole: set[Key]) -> None:
    """Note where each property was named tonight, and where it was not for certain."""
    answers: dict[Key, list[Row]] = {}
    for cell in sweep.cells:
        if cell["status"] in ANSWERED:
            answers.setdefault(key_of(cell, SALE), []).append(cell)
    for place, cells in answers.items():
        before = history.sales.get(place)
        if any(cell["status"] == "offered" for cell in cells):
            history.sales[place] = {"named": sweep.started_at, "answered": sweep.started_at, "is_quiet": False}
        elif before is not None:
            is_quiet = before["is_quiet"] or all(key_of(cell, CELL) in whole for cell in cells)
            history.sales[place] = before | {"answered": sweep.started_at, "is_quiet": is_quiet}


def _observed(sweep: Sweep, whole: set[Key]) -> dict[Key, Row]:
    found: dict[Key, Row] = {}
    for row in sorted(sweep.offers, key=_cheapest_first):
        found.setdefault(key_of(row, OFFER), row | {"is_whole": key_of(row, CELL) in whole})
    return found


def _cheapest_first(row: Row) -> Key:
    return row["total"] is None, row["total"] or 0, row["search_id"], row["offer_no"]


def _add_offers(
    history: History, sweep: Sweep, asked: dict[Key, Row], observed: dict[Key, Row], whole: set[Key]
) -> None:
    at = sweep.started_at
    for key, row in observed.items():
        before = history.open.get(key)
        if before and row["product_type"] == "Hotel" and _moves_floor_alone(before, row):
            history.floor_moves.append(row | {"floor_before": _floor(before), "floor": _floor(row), "moved_at": at})
        change = _change(before, row)
        began = row | {
            "change": change,
            "is_offered": True,
            "valid_from": at,
            "first_seen_at": before["first_seen_at"] if before else at,
            "last_seen_at": at,
            "snapshots": 1,
            "longest_unseen_days": 0,
            "unobserved_since": None,
            "doubted_since": None,
            "began": (sweep.sweep_id, row["search_id"], row["offer_no"]),
        }
        if change is None:
            assert before is not None
            kept = ("change", "valid_from", "began")
            began |= {name: before[name] for name in kept} | _seen_again(before, at)
        elif before is not None:
            history.closed.append(before | {"valid_to": at, "ended_by": change})
        history.open[key] = began
    requested = {(cell["property_id"], cell["market"]) for cell in sweep.cells}
    answered = {key_of(cell, STAY) for cell in sweep.cells if cell["status"] in ANSWERED}
    for key, before in list(history.open.items()):
        if key in observed:
            continue
        cell = asked.get(key[: len(CELL)])
        if key[: len(CELL)] in whole:
            if before["is_offered"]:
                history.closed.append(before | {"valid_to": at, "ended_by": "gone"})
            _gone(history, key, before, at)
        elif before["check_in"] <= sweep.snapshot_date:
            history.closed.append(
                before | {"valid_to": datetime.combine(before["check_in"], time(), UTC), "ended_by": "stay_began"}
            )
            del history.open[key]
        elif cell is not None:
            marks = {"unobserved_since": before["unobserved_since"] or at}
            if cell["status"] in ANSWERED or cell["is_left_out"]:
                marks["doubted_since"] = before["doubted_since"] or at
            history.open[key] = before | marks
        elif (
            key_of(before, STAY) in answered
            or (before["property_id"], before["market"]) not in requested
            or (sweep.snapshot_date - before["last_seen_at"].date()).days > UNREQUESTED_DAYS
        ):
            history.open[key] = before | {"unobserved_since": None, "doubted_since": before["doubted_since"] or at}


def _gone(history: History, key: Key, before: Row, at: datetime) -> None:
    was_offered = before["is_offered"]
    history.open[key] = (
        before
        | NO_VALUES
        | {
            "change": "gone",
            "is_offered": False,
            "valid_from": at if was_offered else before["valid_from"],
            "last_seen_at": at,
            "unobserved_since": None,
            "doubted_since": None,
            "is_whole": True,
        }
        | ({"snapshots": 1, "longest_unseen_days": 0} if was_offered else _seen_again(before, at))
    )


def _seen_again(before: Row, at: datetime) -> Row:
    """Return what another sighting of the same state changes. From one day to the next, nothing is unseen."""
    days = (at.date() - before["last_seen_at"].date()).days
    longest = max(before["longest_unseen_days"], days if days > 1 else 0)
    return {"snapshots": before["snapshots"] + 1, "longest_unseen_days": longest}


def _change(before: Row | None, row: Row) -> str | None:
    if before is None:
        return "first"
    if not before["is_offered"]:
        return "back"
    return "value" if any(before[name] != row[name] for name in VALUES) else None


def _moves_floor_alone(before: Row, row: Row) -> bool:
    is_same_total = row["total"] is not None and before["total"] == row["total"]
    return before["is_offered"] and is_same_total and _floor(before) != _floor(row)


def _floor(row: Row) -> int | None:
    return row["floor"] or None


def _count_rooms(history: History, observed: dict[Key, Row]) -> None:
    """Note each room of a cell whose number of rooms differs from the last known one."""
    tonight: dict[Key, int] = {}
    for row in observed.values():
        rooms = row["available_rooms"]
        if rooms is not None and 0 <= rooms <= PLAUSIBLE_ROOMS:
            room = (*key_of(row, CELL), row["room_id"])
            tonight[room] = max(tonight.get(room, 0), rooms)
    before: dict[Key, list[Row]] = {}
    for row in history.open.values():
        before.setdefault((*key_of(row, CELL), row["room_id"]), []).append(row)
    for room, after in tonight.items():
        known = before.get(room)
        if not known:
            continue
        reported = [
            (row["last_seen_at"], -row["available_rooms"])
            for row in known
            if row["is_offered"] and row["available_rooms"] is not None and row["available_rooms"] <= PLAUSIBLE_ROOMS
        ]
        rooms_before = -max(reported)[1] if reported else None
        is_back = not any(row["is_offered"] for row in known)
        if is_back and _was_only_silent(history, known):
            continue
        if (rooms_before is not None and rooms_before != after) or is_back:
            history.stock_changes.append(
                dict(zip((*CELL, "room_id"), room, strict=True)) | {"before": rooms_before, "after": after}
            )


def _was_only_silent(history: History, known: list[Row]) -> bool:
    """Whether a room was missing only while its whole market was, which says nothing about it."""
    seen_at, gone_at = (max(row[name] for row in known) for name in ("last_seen_at", "valid_from"))
    sold_at = history.silences.get((known[0]["source"], known[0]["market"], seen_at))
    return sold_at is not None and bool(sold_at < gone_at)


def _note_silences(history: History, sweep: Sweep) -> None:
    for place in {key_of(cell, PLACE) for cell in sweep.cells if cell["status"] in ANSWERED}:
        if any(cell["status"] == "offered" for cell in sweep.cells if key_of(cell, PLACE) == place):
            history.sold[place] = sweep
        elif place in history.sold:
            sold = history.sold[place]
            if sold.snapshot_date >= sweep.snapshot_date - timedelta(days=SILENT_NIGHTS):
                history.silences[(*place, sweep.started_at)] = sold.started_at


def _add_cells(
    history: History, sweep: Sweep, asked: dict[Key, Row], whole: set[Key], doubtful: dict[Key, int]
) -> None:
    at = sweep.started_at
    for key, cell in asked.items():
        before = history.cells.get(key) or {
            "answered_at": None,
            "known_status": None,
            "known_code": None,
            "known_from": None,
            "known_seen_at": None,
            "spells": 0,
            "parts_in_doubt": 0,
        }
        is_answered = cell["status"] in ANSWERED
        is_known = is_answered and (cell["status"] == "offered" or key in whole)
        code = None if cell["status"] == "offered" else cell["code"]
        is_same = is_known and before["known_status"] == cell["status"] and before["known_code"] == code
        answered_at = cell["searched_at"] if is_answered else before["answered_at"]
        now = before | cell | {"answered_at": answered_at, "is_whole": key in whole}
        if is_answered:
            now["parts_in_doubt"] = doubtful.get(key, 0)
        if is_known:
            now |= {"known_status": cell["status"], "known_code": code, "known_seen_at": at}
            if not is_same:
                now["known_from"] = at
                now["spells"] = before["spells"] + (cell["status"] == "offered")
                if before["known_status"] is not None:
                    history.cells_closed.append(before | {"known_to": at, "next_status": cell["status"]})
        history.cells[key] = now
    for key, before in list(history.cells.items()):
        if key not in asked and before["check_in"] <= sweep.snapshot_date:
            if before["known_status"] is not None:
                ended_at = datetime.combine(before["check_in"], time(), UTC)
                history.cells_closed.append(before | {"known_to": ended_at, "next_status": "stay_began"})
            del history.cells[key]


def days_before(day: date, instant: datetime) -> int:
    """Return the days from the date of an instant to a day."""
    return (day - instant.date()).days
