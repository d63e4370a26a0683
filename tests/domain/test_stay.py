"""Stays and parties."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.stay import Party, Room, Stay

rooms = st.builds(
    Room, st.integers(1, 9), st.lists(st.integers(0, 17), max_size=8).map(lambda ages: tuple(sorted(ages)))
)
parties = st.builds(Party, st.lists(rooms, min_size=1, max_size=9).map(tuple))


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(1, 1000))
def test_a_stay_has_as_many_nights_as_it_was_made_of(check_in, nights):
    stay = Stay.of(check_in, nights)
    assert (stay.nights, stay.check_out - stay.check_in) == (nights, timedelta(days=nights))


@pytest.mark.parametrize("nights", [0, -1])
def test_a_stay_has_at_least_one_night(nights):
    with pytest.raises(ValueError, match="not after check_in"):
        Stay.of(date(2031, 5, 10), nights)


def test_stays_are_ordered_by_their_first_night():
    assert Stay.of(date(2031, 5, 9), 9) < Stay.of(date(2031, 5, 10), 1) < Stay.of(date(2031, 5, 10), 2)


@given(parties)
def test_a_party_is_read_back_from_its_text(party):
    assert Party.parse(party.text) == party
    assert Party.parse(party.text).text == party.text == str(party)


@given(parties, st.randoms())
def test_the_order_of_ages_does_not_matter_and_that_of_rooms_does(party, chance):
    shuffled = "+".join(
        f"{room.adults}c{'-'.join(map(str, chance.sample(room.child_ages, len(room.child_ages))))}"
        if room.child_ages
        else f"{room.adults}"
        for room in party.rooms
    )
    assert Party.parse(f" {shuffled} ").text == party.text


@pytest.mark.parametrize(("text", "canonical"), [("2", "2"), ("2c9-5", "2c5-9"), ("2c05+1", "2c5+1"), ("1c0", "1c0")])
def test_a_party_has_one_text(text, canonical):
    assert Party.parse(text).text == canonical


def test_equal_parties_are_one_key():
    assert len({Party.parse("2c9-5+1"), Party.parse("2c5-9+1")}) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a room"),
        ("0", "is not a room"),
        ("10", "is not a room"),
        ("2c", "is not a room"),
        ("2c5,9", "is not a room"),
        ("2+", "is not a room"),
        ("two", "is not a room"),
        ("٢", "is not a room"),
        ("2c18", "not the age of a child"),
        ("2c" + "-".join("123456789"), "error 1010"),
        ("+".join("1" * 10), "error 1012"),
    ],
)
def test_a_text_that_is_no_party_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        Party.parse(text)
    assert repr(text) in str(caught.value)
