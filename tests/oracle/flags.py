"""Findings night after night: when each was first and last seen, and how it ended.

A finding is seen again by a night that observed some of its evidence. It ends when all of its evidence was answered
without it, or its stay began. A night without an answer neither counts nor ends it; nor does an answer of which a part
could not be read, nor that a market sells nothing for a night or two, as if it had failed, nor that only a price of
another market is off sale for as long. Two prices that were apart and meet are corrected, whatever became of others;
while they are apart, and neither is said to deviate instead, nothing has ended. Nor does anything begin that two
prices alone show, against what is open about the other of them, or where other offers say the same of the other
(pairs_known), while another market is silent, or where one has sold the offer until a night or two ago, unless only
the accused price has changed since, or is off in the other direction now. Against the reference market, two must agree
with each other. That rates alone end no converted difference is left out: in this lake, none is explained by a rate
later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import combinations
from typing import Any

import relations_of_prices
from history import OFFER, UNOBSERVED_NIGHTS, History, Key, Row, add, key_of
from pairs_known import known
from raw_zone import Sweep
from relations_of_disparity import ALIKE_PCT, ALLOWED_PCT, DISPARITY_PCT, disparities
from relations_of_markup import markups
from relations_of_pairs import Rates, pairs
from relations_of_promises import Kinds, broken_promises, kinds_of

SILENT_NIGHTS = 2
RULES = (
    "market_disparity", "fx_markup", "phantom_promotion", "unnamed_promotion", "wrong_discount",
    "total_above_reference",
)  # fmt: skip


@dataclass
class Flags:
    """Findings that are open, by rule and subject, those that have ended, and what each night came to."""

    open: dict[Key, Row] = field(default_factory=dict)
    closed: list[Row] = field(default_factory=list)
    nights: list[Night] = field(default_factory=list)


@dataclass(frozen=True)
class Night:
    """What was open after a night, and how many properties were on sale by market."""

    at: datetime
    day: date
    open: list[Row]
    on_sale: Mapping[str, int]


def flags(sweeps: list[Sweep], reference_market: str, rates: Rates, ranks: Mapping[Any, int]) -> Flags:
    """Return the state after all nights."""
    history, found, kinds = History(), Flags(), kinds_of(sweeps)
    sold, sales = _Sold(), _Sales()
    for sweep in sweeps:
        add(history, sweep)
        sold.note(sweep)
        sales.note(sweep, history)
        offers = relations_of_prices.frame(history)
        compared = pairs(offers, reference_market, rates, ranks, ["exact"])
        cells = list(history.cells.values())
        seen, silent = _seen(compared, sweep), sold.silent(sweep)
        told = [row | {"rule": "market_disparity"} for row in disparities(compared, cells, reference_market, rates)]
        decided = [row for row in told if _is_decided(row, found, history, seen, silent)]
        held = [
            flag
            for flag in found.open.values()
            if flag["rule"] == "market_disparity" and not _is_right_beside_others(flag, history, sweep.started_at)
        ]
        on_sale = sales.on_sale().get(reference_market, 0)
        repeated = known(told, decided, held, reference_market, on_sale, sweep.snapshot_date)
        findings = [
            *(row for row in decided if row not in repeated or not _is_new(row, found)),
            *markups(offers, rates, ranks),
            *_promises(history, kinds),
        ]
        tonight: dict[Key, Row] = {}
        for row in sorted(findings, key=lambda row: -row["size_pct"]):
            tonight.setdefault((row["rule"], *(row.get("subject") or row["offer"])), row)
        _move_on(found, sweep, history, tonight, seen, silent)
        found.nights.append(Night(sweep.started_at, sweep.snapshot_date, list(found.open.values()), sales.on_sale()))
    return found


def _promises(history: History, kinds: Kinds) -> list[Row]:
    return [
        row | {"offer": key_of(row, OFFER), "evidence": frozenset([key_of(row, OFFER)])}
        for row in broken_promises(history, kinds)
    ]


def _seen(compared: list[Row], sweep: Sweep) -> dict[Key, Row]:
    """Return the pairs that the night saw both prices of, by the offer that is compared."""
    return {
        key_of(row["of"], OFFER): row
        for row in compared
        if row["currency_basis"] != "supplier_rate" and row["of"]["sweep_id"] == sweep.sweep_id
    }


def _meet(pair: Row) -> bool:
    return bool(pair["verdict"] == "meet" or abs(pair["gap_pct"]) <= DISPARITY_PCT)


def _has_left_it_open(row: Row, history: History, found: Flags) -> bool:
    """Whether a third market has sold the offer, and what has changed since does not show which price moved."""
    own, other = history.open[row["offer"]], history.open[row["compared_offers"][0]]
    same = ("source", "property_id", "product_type", "check_in", "nights", "party", "room_id", "board_id", "policy")
    left = [
        third["valid_from"]
        for third in history.open.values()
        if not third["is_offered"]
        and key_of(third, same) == key_of(own, same)
        and third["market"] not in {own["market"], other["market"]}
        and third["currency"] == other["currency"]
    ]
    assert history.latest is not None
    if not left or max(left) < history.latest.started_at - timedelta(hours=24 * SILENT_NIGHTS + 12):
        return False
    has_turned = (row["rule"], *row["offer"]) in found.open
    return not (own["valid_from"] >= max(left) and (other["valid_from"] < max(left) or has_turned))


def _agree(pair: Row, other: Row) -> bool:
    """Whether two markets deviate from the reference market by about the same share."""
    is_converted = "same" not in {pair["currency_basis"]} & {other["currency_basis"]}
    allowed = DISPARITY_PCT + ALLOWED_PCT if is_converted else ALIKE_PCT
    away = abs((100 + pair["gap_pct"]) / (100 + other["gap_pct"]) - 1)
    return pair["market"] != other["market"] and 100 * away <= allowed


def _is_decided(row: Row, found: Flags, history: History, seen: dict[Key, Row], silent: set[tuple[str, str]]) -> bool:
    """Whether a disparity is more than two prices, where that is not enough."""
    contrary = [found.open.get((row["rule"], *offer)) for offer in row["compared_offers"]]
    is_contradicted = any(flag and (flag["size_pct"] > 0) is not (row["size_pct"] > 0) for flag in contrary)
    is_one_silent = any(source == row["source"] and market != row["market"] for source, market in silent)
    if not is_contradicted and not (_is_new(row, found) and (is_one_silent or _has_left_it_open(row, history, found))):
        return True
    own, beside = seen.get(row["offer"]), seen.get(row["compared_offers"][0])
    reference = key_of(own["against"], OFFER) if own else row["offer"]
    others = [pair for pair in _with_other_source(row, reference, seen) if pair["market"] != row["market"]]
    if own is None:
        apart = [pair for pair in others if (pair["gap"] > 0) is not (row["size_pct"] > 0) and not _meet(pair)]
        # That two accused prices agree was known when they were found to deviate.
        accused = {flag["market"] for flag in contrary if flag and (flag["size_pct"] > 0) is not (row["size_pct"] > 0)}
        return any(
            _agree(one, other) and not {one["market"], other["market"]} <= accused
            for one, other in combinations(apart, 2)
        )
    if beside is None:
        return any(pair["currency_basis"] == "same" and _meet(pair) for pair in others)
    return any(
        pair["market"] != beside["market"]
        and pair["currency"] == beside["currency"]
        and 100 * abs(pair["total"] / beside["total"] - 1) <= ALIKE_PCT
        for pair in others
    )


def _with_other_source(row: Row, reference: Key, seen: dict[Key, Row]) -> list[Row]:
    """Return prices beside the one of the reference market, and those of the other source if they are evidence."""
    its = [pair for pair in seen.values() if key_of(pair["against"], OFFER) == reference]
    if not its or len({source for source, *_ in row["evidence"]}) == 1:
        return its
    found = list(its)
    for pair in seen.values():
        source, *offer = key_of(pair["against"], OFFER)
        if source != reference[0] and offer == list(reference[1:]):
            level = (100 + pair["gap_pct"]) * pair["reference_total"] / its[0]["reference_total"]
            verdict = "meet" if abs(level - 100) <= ALIKE_PCT else "apart"
            found.append(pair | {"gap": level - 100, "gap_pct": level - 100, "verdict": verdict})
    return found


def _is_new(row: Row, found: Flags) -> bool:
    """Whether no open finding says so already."""
    before = found.open.get((row["rule"], *row["offer"]))
    return before is None or (before["size_pct"] > 0) is not (row["size_pct"] > 0)


def _move_on(
    found: Flags,
    sweep: Sweep,
    history: History,
    tonight: dict[Key, Row],
    seen: dict[Key, Row],
    silent: set[tuple[str, str]],
) -> None:
    at = sweep.started_at
    for key, before in list(found.open.items()):
        if key not in tonight and (ended := _ended(before, sweep, history, seen, silent, tonight)):
            found.closed.append(before | ended | {"open_until": at})
            del found.open[key]
    for key, row in tonight.items():
        last = found.open.get(key)
        is_observed = any(history.open[offer]["sweep_id"] == sweep.sweep_id for offer in row["evidence"])
        if last is None or is_observed:
            first = last or {"first_flagged_at": at, "snapshots": 0}
            found.open[key] = row | {
                "first_shown": row["offer"][1:],
                "first_flagged_at": first["first_flagged_at"],
                "snapshots": first["snapshots"] + 1,
                "last_flagged_at": at,
                "resolved_at": None,
                "ended_by": None,
            }


def _ended(
    flag: Row,
    sweep: Sweep,
    history: History,
    seen: dict[Key, Row],
    silent: set[tuple[str, str]],
    tonight: dict[Key, Row],
) -> Row | None:
    at = sweep.started_at
    if flag["check_in"] <= sweep.snapshot_date:
        return {"resolved_at": datetime.combine(flag["check_in"], time(), UTC), "ended_by": "stay_began"}
    if flag["rule"] == "market_disparity":
        its = [
            pair
            for offer in flag["evidence"]
            if (pair := seen.get(offer))
            and pair["source"] == flag["source"]
            and flag["market"] in {pair["market"], pair["against"]["market"]}
        ]
        offers = [history.open.get(offer) for offer in flag["evidence"]]
        is_all_seen = all(row and _is_answered(row, at) and not _is_gone(history, row) for row in offers)
        is_changed = history.open[flag["offer"]]["valid_from"] > flag["last_flagged_at"]
        is_met = its and all(_meet(pair) or _has_crossed(flag, pair) for pair in its) and (is_changed or is_all_seen)
        if is_met or (not its and is_changed and _is_right_beside_others(flag, history, at)):
            return {"resolved_at": at, "ended_by": "value"}
        if any(_is_apart_still(flag, pair) for pair in its) and not _is_another_said(flag, tonight):
            return None
    rows = [history.open[offer] for offer in flag["evidence"] if offer in history.open]
    is_heard = all(_is_answered(row, at) or _has_left(history, row) for row in rows)
    if not is_heard or any(not row["is_offered"] and (row["source"], row["market"]) in silent for row in rows):
        return None
    if not rows:
        why = "stay_began"
    elif gone := [row for row in rows if _is_gone(history, row)]:
        own = [row for row in rows if row["market"] == flag["market"]]
        is_on_sale = bool(own) and not any(row in gone for row in own)
        if is_on_sale and flag["last_flagged_at"] >= at - timedelta(days=SILENT_NIGHTS, hours=12):
            return None
        why = "not_compared" if is_on_sale else "gone"
    else:
        why = "not_asked" if any(_has_left(history, row) for row in rows) else "value"
    return {"resolved_at": at, "ended_by": why}


def _is_right_beside_others(flag: Row, history: History, at: datetime) -> bool:
    """Whether a price is level with, or beyond, the others that are evidence, as far as they are on sale tonight."""
    own = history.open.get(flag["offer"])
    if flag["rule"] != "market_disparity" or not own or not own["is_offered"] or own["last_seen_at"] != at:
        return False
    others = [
        row["total"]
        for offer in flag["evidence"]
        if (row := history.open.get(offer)) and row["market"] != flag["market"] and row["is_offered"]
        and all(row[name] == own[name] for name in ("source", "currency")) and row["last_seen_at"] == at
    ]  # fmt: skip
    above, allowed = 1 if flag["size_pct"] > 0 else -1, DISPARITY_PCT / 100
    return bool(others) and all(above * (own["total"] / total - 1) <= allowed for total in others)


def _is_apart_still(flag: Row, pair: Row) -> bool:
    """Whether two prices in one currency still differ, in the direction of the finding about one of them."""
    return pair["currency_basis"] == "same" and not _meet(pair) and _is_dearer(flag, pair) is (flag["size_pct"] > 0)


def _has_crossed(flag: Row, pair: Row) -> bool:
    """Whether two prices in one currency differ in the other direction."""
    return pair["currency_basis"] == "same" and bool(pair["gap"]) and _is_dearer(flag, pair) is (flag["size_pct"] < 0)


def _is_dearer(flag: Row, pair: Row) -> bool:
    """Whether the price that a finding is about is above the other one."""
    return (pair["gap"] > 0) is (flag["market"] == pair["market"])


def _is_another_said(flag: Row, tonight: dict[Key, Row]) -> bool:
    """Whether another offer is found to deviate from this one."""
    return any(row["rule"] == flag["rule"] and flag["offer"] in row["evidence"] for row in tonight.values())


def _is_gone(history: History, row: Row) -> bool:
    return not row["is_offered"] or bool(row["unobserved_since"] and _has_left(history, row))


def _is_answered(row: Row, at: datetime) -> bool:
    return row["last_seen_at"] == at and (row["is_whole"] or row["source"] == "multi")


def _has_left(history: History, row: Row) -> bool:
    return bool(history.has_left(row))


class _Sold:
    """On which days a market had offers."""

    def __init__(self) -> None:
        self._days: dict[tuple[str, str], set[date]] = {}

    def note(self, sweep: Sweep) -> None:
        for cell in sweep.cells:
            days = self._days.setdefault((cell["source"], cell["market"]), set())
            if cell["status"] == "offered":
                days.add(sweep.snapshot_date)

    def silent(self, sweep: Sweep) -> set[tuple[str, str]]:
        """Return the markets that sell nothing tonight, and did a day or two ago."""
        today = sweep.snapshot_date
        return {
            place
            for place, days in self._days.items()
            if days and today not in days and max(days) >= today - timedelta(days=SILENT_NIGHTS)
        }


class _Sales:
    """Which properties are on sale in a market: those still requested that had offers, and none denied since."""

    def __init__(self) -> None:
        self._last: dict[Key, Row] = {}
        self._asked: dict[tuple[int, str], date] = {}

    def note(self, sweep: Sweep, history: History) -> None:
        answers: dict[Key, list[bool | None]] = {}
        for key, cell in history.cells.items():
            if cell["sweep_id"] == sweep.sweep_id:
                self._asked[key[1], key[2]] = sweep.snapshot_date
            if cell["sweep_id"] == sweep.sweep_id and cell["status"] in {"offered", "no_offer", "absent"}:
                # Nothing is known where a part could not be read.
                said = True if cell["status"] == "offered" else False if cell["is_whole"] else None
                answers.setdefault(key[:4], []).append(said)
        for place, said in answers.items():
            if True in said:
                self._last[place] = {"sold_at": sweep.started_at, "quiet": set()}
            elif place in self._last and None not in said:
                self._last[place]["quiet"].add(sweep.snapshot_date)

    def on_sale(self) -> dict[str, int]:
        """Return how many properties are; what a silent market last sold still is, for a day or two."""
        last_sold: dict[Key, datetime] = {}
        latest = max(self._asked.values())
        asked = {
            place: row
            for place, row in self._last.items()
            if (latest - self._asked[place[1], place[2]]).days <= UNOBSERVED_NIGHTS
        }
        for (source, _, market, _), row in asked.items():
            last_sold[source, market] = max(row["sold_at"], last_sold.get((source, market), row["sold_at"]))
        found: dict[str, set[int]] = {}
        for (source, property_id, market, _), row in asked.items():
            is_of_last = row["sold_at"] == last_sold[source, market]
            if not row["quiet"] or (is_of_last and len(row["quiet"]) <= SILENT_NIGHTS):
                found.setdefault(market, set()).add(property_id)
        return {market: len(properties) for market, properties in found.items()}
