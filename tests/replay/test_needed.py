"""A replay leaves out what a rule does not depend on."""

from __future__ import annotations

from pipeline.lake.relations import finding_rules, sources
from pipeline.publish.state import FILED_UPDATES, SMALL_UPDATES, compared
from pipeline.replay.needed import needed_by

MADE = {f"night.{name}" for name in compared()} | {
    f"state.{update.name}" for update in (*FILED_UPDATES, *SMALL_UPDATES)
}


def test_a_rule_needs_what_it_reads_and_what_every_night_computes():
    for rule in finding_rules().values():
        if (needed := needed_by(rule)) is not None:
            assert needed <= MADE
            assert sources(rule) & MADE <= needed
            assert "night.change_count" in needed


def test_a_promotion_without_an_end_needs_no_comparison_of_markets():
    needed = needed_by(finding_rules()["evergreen_promotion"])
    assert {"state.offer_open", "state.offer_closed"} <= needed
    assert not needed & {"night.parity_observed", "state.parity_open", "state.waiting"}


def test_a_rule_about_markets_needs_everything():
    assert needed_by(finding_rules()["market_disparity"]) is None
