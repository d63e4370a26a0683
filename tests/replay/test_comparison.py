"""What `nightaudit explain` takes for the same value."""

from __future__ import annotations

import pytest

from pipeline.replay.explain import Comparison


@pytest.mark.parametrize(
    ("flagged", "recomputed", "is_same"),
    [
        # Sentences of nights before had no separators of thousands.
        ("DE pays 12840.50 EUR against 1012345.00 in NL.", "DE pays 12,840.50 EUR against 1,012,345.00 in NL.", True),
        ("DE pays 12840.50 EUR against 980.00 in NL.", "DE pays 12,840.60 EUR against 980.00 in NL.", False),
        ("DE, NL", "DENL", False),
    ],
)
def test_a_sentence_of_an_earlier_night_may_lack_separators_of_thousands_alone(flagged, recomputed, is_same):
    assert Comparison("finding", flagged, recomputed).is_same is is_same
