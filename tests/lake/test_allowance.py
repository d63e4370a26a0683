"""The daily cap holds over processes, crashes and changes of the cap itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pipeline.domain.errors import CallsUsedUp, CorruptObject
from pipeline.lake.allowance import DailyCalls

DAY = datetime(2030, 1, 1, 12, tzinfo=UTC)


def take_all(lake, cap, day=DAY):
    calls, taken = DailyCalls(lake, cap, lambda: day), 0
    with pytest.raises(CallsUsedUp, match=str(cap)):  # noqa: PT012 - how many go well is the question
        while True:
            calls.take()
            taken += 1
    return taken


@pytest.mark.parametrize("cap", [1, 7, 100, 1000, 1234])
def test_exactly_the_cap_is_handed_out(lake, cap):
    assert take_all(lake, cap) == cap
    assert take_all(lake, cap) == 0


def test_the_next_day_begins_again(lake):
    calls = DailyCalls(lake, 1, lambda: days[-1])
    days = [DAY]
    calls.take()
    days.append(DAY.replace(day=2))
    calls.take()


def test_what_two_processes_take_adds_up(lake):
    one, other = (DailyCalls(lake, 1000, lambda: DAY) for _ in range(2))
    for _ in range(15):
        one.take()
        other.take()
    # What is left of their leases of ten is theirs.
    assert take_all(lake, 1000) == 1000 - 40


@pytest.mark.parametrize(("before", "after"), [(100, 200), (200, 300), (1000, 100), (100, 5000)])
def test_a_cap_that_is_changed_during_the_day_counts_what_was_taken(lake, before, after):
    assert take_all(lake, before) == before
    assert take_all(lake, after) == max(0, after - before)


@pytest.mark.parametrize("cap", [1, 7, 250, 1234])
def test_what_is_covered_can_be_taken(lake, cap):
    calls = DailyCalls(lake, cap, lambda: DAY)
    assert calls.covers(cap)
    assert not calls.covers(cap + 1)
    for left in reversed(range(cap)):
        calls.take()
        assert calls.covers(left)
        assert not calls.covers(left + 1)


@pytest.mark.parametrize(
    "lease", [b"{}", b'{"calls": null}', b'{"calls": "7"}', b'{"calls": 0}', b'{"calls": -900}', b'{"calls": true}']
)
def test_a_damaged_lease_never_lets_a_day_exceed_its_cap(lake, lease):
    lake.put_new("calls/2030-01-01/000000.json", lease)
    with pytest.raises(CorruptObject, match=r"000000\.json does not say how many calls") as refused:
        DailyCalls(lake, 1000, lambda: DAY).take()
    assert "A lease of today's cap has 10." in refused.value.hint
