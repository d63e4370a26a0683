"""What a name that is not known was probably meant to be."""

import pytest

from pipeline.domain.names import meant_by

KNOWN = ("property_id", "property_name", "property_group", "own_code", "latitude")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("id", "property_id"),
        ("Group", "property_group"),
        ("code", "own_code"),
        ("property", "property_id or property_name or property_group"),
        ("codes", "own_code"),
        ("lattitude", "latitude"),
        ("remarks", ""),
    ],
)
def test_it_has_the_same_words_or_is_spelled_alike(name, meant):
    assert meant_by(name, KNOWN) == meant
