"""What `explain` says about an answer without a single offer to show."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pipeline.cli.explain import _observed, _result
from pipeline.replay.explain import Comparison, Explanation


@pytest.mark.parametrize(
    ("role", "said"),
    [("last_offer", "some; the finding is about no single one"), ("without_offer", "not in this answer")],
)
def test_the_last_answer_with_an_offer_is_not_said_to_be_without_one(role, said):
    keys = ("operation", "market", "product_type", "check_in", "nights", "party", "started_at", "sweep_id")
    evidence = SimpleNamespace(address="raw/a#1", body_sha256="0")
    observed = SimpleNamespace(role=role, search=dict.fromkeys(keys, "x"), request={}, evidence=evidence, offer=None)
    assert dict(_observed(observed))["Offer"] == said


ONLY_THE_VERSION = "Only the version of the rule differs: version 19 made the finding, and version 20 confirms it."


@pytest.mark.parametrize(
    ("version", "size", "said"),
    [
        (20, 5.0, "Same result, number by number."),
        (19, 5.0, f"Same result, number by number. {ONLY_THE_VERSION}"),
        (19, 4.0, "Different result."),
    ],
)
def test_a_finding_of_an_older_version_is_confirmed_by_a_newer_one(version, size, said):
    """Every finding from before an upgrade used to be a result that differs and should be reported."""
    compared = (Comparison("rule_version", version, 20), Comparison("size_pct", size, 5.0))
    explained = Explanation({}, True, None, (), (), (), compared, is_found=True)
    assert explained.is_reproduced == said.startswith("Same")
    assert _result(explained).plain == said
