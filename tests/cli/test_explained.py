"""What `explain` says about an answer without a single offer to show."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pipeline.cli.explain import _observed


@pytest.mark.parametrize(
    ("role", "said"),
    [("last_offer", "some; the finding is about no single one"), ("without_offer", "not in this answer")],
)
def test_the_last_answer_with_an_offer_is_not_said_to_be_without_one(role, said):
    keys = ("operation", "market", "product_type", "check_in", "nights", "party", "started_at", "sweep_id")
    evidence = SimpleNamespace(address="raw/a#1", body_sha256="0")
    observed = SimpleNamespace(role=role, search=dict.fromkeys(keys, "x"), request={}, evidence=evidence, offer=None)
    assert dict(_observed(observed))["Offer"] == said
