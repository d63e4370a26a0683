"""How long offers have been dearer than in the reference market, night after night, and how such times end.

A night that compared a pair and found it dearer adds to its count; one that found it not dearer, on another basis or
with another offer ends it. A night that compared nothing changes nothing, unless it says that one of the two is gone,
or one of them has been in doubt, or asked for in another currency, for so long that it leaves all comparisons. A market
that sells nothing at all for a night or two has failed: that is no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from typing import Any

from history import CELL, OFFER, History, Key, Row, add, key_of
from raw_zone import Sweep
from relations_of_pairs import Rates, pairs
from relations_of_prices import frame_of


@dataclass
class Persistence:
    """What runs, by grade and pair, and the episodes of exact pairs that have ended."""

    running: dict[Key, Row] = field(default_factory=dict)
    ended: list[Row] = field(default_factory=list)


def persistence(sweeps: list[Sweep], reference_market: str, rates: Rates, ranks: Mapping[Any, int]) -> Persistence:
    """Return the state after all nights."""
    history, found = History(), Persistence()
    for sweep in sweeps:
        add(history, sweep)
        offers = frame_of(history.observed[-1].values())
        compared = {_whose(pair): pair for pair in pairs(offers, reference_market, rates, ranks)}
        _night(found, _Night(sweep, history, _groups(offers.to_dicts())), compared)
    return found


def runs_of(found: Persistence, pair: Row) -> Row | None:
    """Return what runs of a pair as it is compared now: with that offer, on that basis."""
    before = found.running.get(_whose(pair))
    return before if before is not None and before["against"] == _against(pair) else None


def _whose(pair: Row) -> Key:
    """What a count belongs to: an exact offer, or the group that a cheapest one stands for."""
    offer, grade = pair["of"], pair["match_grade"]
    if grade == "exact":
        return (grade, *key_of(offer, OFFER))
    family = offer["family"] if grade == "board_family" else ""
    return (grade, *key_of(offer, CELL), offer["room_no"], family, offer["currency"])


def _against(pair: Row) -> Key:
    other = pair["against"]
    kind = OFFER if pair["match_grade"] == "exact" else (*CELL, "currency")
    return (*key_of(other, kind), pair["currency_basis"])


@dataclass(frozen=True)
class _Night:
    sweep: Sweep
    history: History
    sold: set[Key]
    """Groups that some offer stood for."""

    def is_silent(self, source: str, market: str) -> bool:
        """Whether a market that sold something a night or two ago sells nothing at all: it has more likely failed."""
        return (source, market, self.sweep.started_at) in self.history.silences


def _groups(offers: list[Row]) -> set[Key]:
    return {
        (key_of(row, CELL), row["room_no"], family, row["currency"])
        for row in offers
        if row["priced"] and row["is_whole"] and row["currency"] is not None
        for family in (row["family"], "")
    }


def _night(found: Persistence, night: _Night, compared: dict[Key, Row]) -> None:
    sweep = night.sweep
    for key, before in list(found.running.items()):
        if key not in compared:
            _not_compared(found, key, before, night)
    for key, pair in compared.items():
        before, against = found.running.get(key), _against(pair)
        if before is not None and (before["against"] != against or pair["verdict"] != "lose"):
            why = (
                "reference_changed"
                if before["against"][:-1] != against[:-1]
                else "basis_changed"
                if before["against"] != against
                else "resolved"
            )
            _end(found, key, why, sweep.started_at)
            before = None
        if pair["verdict"] == "lose":
            began = before or {"began_at": sweep.started_at, "snapshots": 0, "against": against}
            found.running[key] = began | {
                "snapshots": began["snapshots"] + 1,
                "last_losing_at": sweep.started_at,
                "check_in": pair["check_in"],
                "market": pair["market"],
            }


def _not_compared(found: Persistence, key: Key, before: Row, night: _Night) -> None:
    sweep = night.sweep
    is_gone = _offer_is_gone if key[0] == "exact" else _group_is_gone
    if is_gone(key, before, night):
        _end(found, key, "gone", sweep.started_at)
    elif before["check_in"] <= sweep.snapshot_date:
        _end(found, key, "stay_began", datetime.combine(before["check_in"], time(), UTC))
    elif why := _left(key, before, night):
        _end(found, key, why, sweep.started_at)


def _offer_is_gone(key: Key, before: Row, night: _Night) -> bool:
    both = (night.history.open.get(offer) for offer in (key[1:], before["against"][:-1]))
    return any(row and _is_missing(row, night) and not night.is_silent(row["source"], row["market"]) for row in both)


def _is_missing(row: Row, night: _Night) -> bool:
    """Whether an answer of the night that says all has no such offer, now or since an earlier night."""
    return row["change"] == "gone" and bool(row["last_seen_at"] == night.sweep.started_at)


def _left(key: Key, before: Row, night: _Night) -> str | None:
    """Return why one of the two is no longer compared without having been answered as gone, if it is not.

    Of a group, an answer that could not be read may concern any part; one in another currency concerns all of it.
    """
    rows = night.history.dropped()
    if key[0] == "exact":
        doubts = [rows[offer] for offer in (key[1:], before["against"][:-1]) if offer in rows]
    else:
        cells = (key[1 : 1 + len(CELL)], before["against"][: len(CELL)])
        doubts = [row for offer, row in rows.items() if offer[: len(CELL)] in cells and row["unobserved_since"] is None]
    if not doubts:
        return None
    return "not_asked" if doubts[0]["unobserved_since"] is None else "gone"


def _group_is_gone(key: Key, before: Row, night: _Night) -> bool:
    """Whether an answer that says all has no offer of one of the two groups."""
    _grade, *place, room_no, family, currency = key
    *there, there_currency, _ = before["against"]
    for cell, its_currency in ((tuple(place), currency), (tuple(there), there_currency)):
        answer = night.history.cells.get(cell)
        said_all = answer is not None and answer["sweep_id"] == night.sweep.sweep_id and answer["is_whole"]
        if said_all and (cell, room_no, family, its_currency) not in night.sold:
            assert answer is not None
            if not night.is_silent(answer["source"], answer["market"]):
                return True
    return False


def _end(found: Persistence, key: Key, why: str, at: datetime) -> None:
    found.ended.append(found.running.pop(key) | {"key": key, "ended_by": why, "ended_at": at})
