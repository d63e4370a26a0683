"""History against the plainest reading of it: walk the nights, and remember what was last seen of each offer."""

from __future__ import annotations

import random
from datetime import timedelta
from decimal import Decimal

import pytest
from nights import FIRST_DAY, load_night, started_at, sweep_id

from pipeline.domain.tables import STATE_TABLES
from pipeline.lake.database import query_published
from pipeline.publish.publish import publish

# Walks random histories of nights, step by step.
pytestmark = pytest.mark.slow

NIGHTS = 7
ANSWERED = {"offered", "no_offer", "absent"}
KEY = ("source", "property_id", "check_in", "room_id", "board_id", "policy_key", "currency")
VALUE = ("total", "pre_promo_total", "discount_pct", "floor", "available_rooms", "promotion_key")


def make_night(dice: random.Random, night: int):
    """Random cells of one night, with random offers and random damage."""
    cells, offers, rejects = [], [], []
    for search in range(12):
        operation = dice.choice(["multi", "single"])
        cell = {"property_id": dice.choice([1, 2]), "check_in": FIRST_DAY + timedelta(days=dice.choice([2, 4, 40]))}
        cell |= {"operation": operation, "search_id": search}
        same = ("operation", "property_id", "check_in")
        if cell["check_in"] <= started_at(night).date() or any(all(c[n] == cell[n] for n in same) for c in cells):
            continue
        cell["status"] = dice.choices(
            ["offered", "no_offer", "absent", "failed", "rejected", "not_swept"], [12, 2, 2, 2, 1, 1]
        )[0]
        cells.append(cell)
        count = dice.randrange(1, 7) if cell["status"] == "offered" else 0
        offers += [make_offer(dice, cell, offer_no) for offer_no in range(count)]
        if dice.random() < 0.2:
            rejects.append({"search_id": search, "property_id": dice.choice([cell["property_id"], 99, None])})
            rejects[-1]["reject_no"] = len(rejects)
    return {"cell": cells, "offer": offers, "reject": rejects}


def make_offer(dice: random.Random, cell, offer_no: int):
    return {name: cell[name] for name in ("search_id", "property_id", "check_in")} | {
        "offer_no": offer_no,
        "source": "multi" if cell["operation"] == "multi" else "detail",
        "room_stay_id": 0,
        "room_id": dice.choice([70, 71, None]),
        "board_id": dice.choice([14, None]),
        "policy_key": dice.choice([0, 0, -5]),
        "currency": dice.choice(["EUR", "EUR", "EUR", None]),
        "total": dice.choice([100, 100, 100, 120, None]),
        "floor": dice.choice([110, 110, None]),
        "promotion_key": dice.choice([0, 0, 0, 7]),
    }


def seen_of(night):
    """What a night says: cells answered whole, cells asked, and the cheapest offer of each key."""
    unread = {(r["search_id"], r["property_id"]) for r in night["reject"]}
    whole, asked, found = set(), set(), {}
    for cell in night["cell"]:
        key = ("multi" if cell["operation"] == "multi" else "detail", cell["property_id"], cell["check_in"])
        asked.add(key)
        # A part that names no property can only be of one without offers.
        of_no_property = set() if cell["status"] == "offered" else {(cell["search_id"], None)}
        is_read = not unread & {(cell["search_id"], cell["property_id"]), *of_no_property}
        if cell["status"] in ANSWERED and is_read:
            whole.add(key)
    for offer in sorted(
        night["offer"], key=lambda o: (o["total"] is None, o["total"] or 0, o["search_id"], o["offer_no"])
    ):
        found.setdefault(tuple(offer[name] for name in KEY), offer)
    return whole, asked, found


def naive_as_of(nights, last):
    """The offers known to be on sale after night `last`."""
    known = {}
    for night in nights[: last + 1]:
        whole, _, found = seen_of(night)
        known = {key: offer for key, offer in known.items() if key in found or key[:3] not in whole} | found
    today = started_at(last).date()
    return {key: offer["total"] for key, offer in known.items() if key[2] > today}


def naive_history(nights):
    """Every interval of every key: when it began and ended, what ended it, and what it held."""
    rows, open_now = [], {}
    for number, night in enumerate(nights):
        at, today = started_at(number), started_at(number).date()
        whole, asked, found = seen_of(night)
        for key in open_now.keys() | found.keys():
            before, offer = open_now.get(key), found.get(key)
            if offer is not None:
                value = tuple(map(plain, (offer.get(name) for name in VALUE)))
                change = "first" if before is None else "back" if before["value"] is None else "value"
            elif key[:3] in whole:
                value, change = None, "gone"
            else:
                if before["since"] is None and key[:3] in asked:
                    before["since"] = at
                continue
            if before is not None:
                if before["value"] == value:
                    days = (today - before["seen"].date()).days
                    before |= {"since": None, "seen": at, "unseen": max(before["unseen"], days if days > 1 else 0)}
                    continue
                rows.append((*key, before["from"], at, change, before["value"], before["since"], before["unseen"]))
            open_now[key] = {"from": at, "value": value, "since": None, "seen": at, "unseen": 0}
        for key in [key for key in open_now if key[2] <= today]:
            ended = open_now.pop(key)
            ends = ended["from"], midnight(key[2]), "stay_began"
            rows.append((*key, *ends, ended["value"], ended["since"], ended["unseen"]))
    rows += [
        (*key, held["from"], None, None, held["value"], held["since"], held["unseen"]) for key, held in open_now.items()
    ]
    return sorted(rows, key=repr)


def plain(value):
    return Decimal(value) if isinstance(value, int) else value


def midnight(day):
    return started_at(0).replace(year=day.year, month=day.month, day=day.day, hour=0)


def stored_history(file):
    interval = "valid_from", "valid_to", "ended_by", "is_offered"
    columns = (*KEY, *interval, *VALUE, "unobserved_since", "longest_unseen_days")
    query = f"SELECT {', '.join(columns)} FROM mart.offer_history"  # noqa: S608 - our own names
    rows = query_published(file, query).fetchall()
    width = len(KEY)
    return sorted(
        (
            (*row[: width + 3], tuple(map(plain, row[width + 4 : -2])) if row[width + 3] else None, *row[-2:])
            for row in rows
        ),
        key=repr,
    )


def stored_as_of(file, night):
    query = f"SELECT {', '.join((*KEY, 'total'))} FROM mart.offer_as_of('{sweep_id(night)}')"  # noqa: S608 - our own names
    rows = query_published(file, query).fetchall()
    found = {row[:-1]: row[-1] for row in rows}
    assert len(found) == len(rows), "a key is on sale twice"
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_history_and_every_as_of_are_what_walking_the_nights_gives(lake, seed):
    dice = random.Random(seed)  # noqa: S311 - a fixed choice of nights
    nights = [make_night(dice, number) for number in range(NIGHTS)]
    for number, night in enumerate(nights):
        published = publish(lake, load_night(lake, number, **night), started_at(number))
    assert stored_history(published.file) == naive_history(nights)
    for number in range(NIGHTS):
        assert stored_as_of(published.file, number) == naive_as_of(nights, number), number
    assert {row[len(KEY) + 2] for row in naive_history(nights)} == {"value", "gone", "back", "stay_began", None}
    assert any(row[-1] for row in naive_history(nights))
    is_key = "SELECT count(*), count(DISTINCT (sweep_id, source, property_id, offer_key)) FROM lake.offer_change"
    rows, keys = query_published(published.file, is_key).fetchone()
    assert rows == keys > 50
    same_keys = (
        "SELECT (SELECT list(DISTINCT offer_key ORDER BY offer_key) FROM lake.offer_change) = "
        "(SELECT list(DISTINCT offer_key ORDER BY offer_key) FROM mart.offer_history)"
    )
    assert query_published(published.file, same_keys).fetchone() == (True,)


def test_a_file_rebuilt_from_the_ledger_is_the_same_table_by_table(lake):
    dice = random.Random(4)  # noqa: S311 - a fixed choice of nights
    for number in range(4):
        published = publish(lake, load_night(lake, number, **make_night(dice, number)), started_at(number))
    before = {name: all_of(published.file, name) for name in ALL_TABLES}
    published.file.unlink()
    publish(lake, sweep_id(3), started_at(9))
    assert {name: all_of(published.file, name) for name in ALL_TABLES} == before
    assert all(before[name] for name in ("mart.sweep", "lake.offer", "lake.offer_change", "state.offer_closed"))


ALL_TABLES = ("mart.sweep", "lake.offer_change", "lake.offer", *(f"state.{table.name}" for table in STATE_TABLES))


def all_of(file, name):
    return query_published(file, f"SELECT * FROM {name} ORDER BY ALL").fetchall()  # noqa: S608 - our own names
