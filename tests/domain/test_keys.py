"""Keys are stored: what they are made of, and their values, never change."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.keys import policy_key, promotion_key

A, B = (48, 50.0, 1.0, True), (24, 100.0, None, False)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (policy_key([]), 0),
        (policy_key([A, B]), -7393710697015528144),
        (policy_key([(None, None, None, None)]), 5003479914110023177),
        (promotion_key([]), 0),
        (promotion_key([("Discount off", "Early bird")]), 3698915911441867344),
        (promotion_key([(None, None)]), -3260576076044403503),
        (promotion_key([("", "")]), -8279648147038497404),
        (promotion_key([("a|b", "c\nd\\e"), ("free night", None)]), -6112424422922653992),
    ],
)
def test_stored_keys_keep_their_values(key, expected):
    assert key == expected


def test_a_policy_is_a_set_of_penalties():
    assert policy_key([A, B]) == policy_key([B, A]) == policy_key([B, A, B])
    assert policy_key([A, B]) != policy_key([A])


def test_whole_numbers_are_the_same_however_they_were_written():
    assert policy_key([(48, 50, 1, True)]) == policy_key([(48, 50.0, 1.0, True)])


def test_promotions_count_in_their_order():
    one, two = ("free night", "stay 3 pay 2"), ("value add", "parking")
    assert promotion_key([one, two]) != promotion_key([two, one])
    assert promotion_key([one, one]) != promotion_key([one])


nasty = st.none() | st.text("|\\pne\n ", max_size=4)
promotions = st.lists(st.tuples(nasty, nasty), max_size=3)


@given(promotions, promotions)
def test_different_promotions_have_different_keys(one, other):
    assert (promotion_key(one) == promotion_key(other)) == (one == other)


def test_short_texts_of_separators_never_share_a_key():
    texts = [None, *("".join(letters) for size in range(4) for letters in itertools.product("|\\pne\n", repeat=size))]
    keys = {promotion_key([(text, None)]) for text in texts} | {promotion_key([(None, text)]) for text in texts}
    assert len(keys) == 2 * len(texts) - 1


terms = st.tuples(
    st.none() | st.integers(-3, 3),
    st.none() | st.sampled_from([0.0, 0.5, 1.0, 10.0]),
    st.none() | st.sampled_from([0.0, 0.5, 1.0, 10.0]),
    st.none() | st.booleans(),
)


@given(st.sets(terms, max_size=3), st.sets(terms, max_size=3))
def test_different_policies_have_different_keys(one, other):
    assert (policy_key(one) == policy_key(other)) == (one == other)
