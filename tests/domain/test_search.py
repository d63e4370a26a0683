"""Searches, and how a batch is cut in halves."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.search import (
    MAX_PROPERTIES_PER_SEARCH,
    NODES_PER_SEARCH,
    CellStatus,
    Operation,
    ProductType,
    Search,
)
from pipeline.domain.stay import Party, Stay


def search(number, ids):
    stay, party = Stay.of(date(2031, 5, 10), 1), Party.parse("2")
    return Search(number, Operation.MULTI, "SE", ProductType.HOTEL, stay, party, None, tuple(ids))


def all_halves(whole):
    """The search and everything that it can be split into."""
    yield whole
    if len(whole.property_ids) > 1:
        for half in whole.halves():
            yield from all_halves(half)


@given(st.integers(0, 10**9), st.lists(st.integers(), min_size=2, max_size=MAX_PROPERTIES_PER_SEARCH))
def test_halves_ask_for_the_same_properties_in_the_same_order(number, ids):
    first, second = search(number, ids).halves()
    assert first.property_ids + second.property_ids == tuple(ids)
    assert 0 <= len(first.property_ids) - len(second.property_ids) <= 1


@given(st.integers(0, 10**9), st.integers(1, MAX_PROPERTIES_PER_SEARCH))
def test_every_half_of_a_search_has_a_unique_id_between_its_search_and_the_next(number, size):
    ids = [part.id for part in all_halves(search(number, range(size)))]
    assert len(set(ids)) == len(ids) == 2 * size - 1
    assert number * NODES_PER_SEARCH < min(ids)
    assert max(ids) < (number + 1) * NODES_PER_SEARCH


def test_a_culprit_stands_alone_after_at_most_seven_splits():
    alone = [part for part in all_halves(search(0, range(100))) if len(part.property_ids) == 1]
    assert sorted(part.property_ids[0] for part in alone) == list(range(100))
    assert max(part.node.bit_length() for part in alone) == 8


def test_halves_differ_from_their_batch_in_the_properties_alone():
    whole = search(3, range(4))
    for half in whole.halves():
        assert {name for name in Search.__slots__ if getattr(half, name) != getattr(whole, name)} == {
            "property_ids",
            "node",
        }


@pytest.mark.parametrize(("kind", "count"), [(Operation, 3), (ProductType, 2), (CellStatus, 6)])
def test_values_are_what_is_written_to_the_wire_and_the_tables(kind, count):
    assert len(kind) == count
    assert all(f"{member}" == member.value for member in kind)
