"""Measured truth: on clean data each rule finds what was planted, all of it and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted_world import CHEAP_PROPERTIES, CHEAP_STAYS, MANY_STAYS, made
from truth import TRUTH, scores

from pipeline.lake.relations import finding_rules
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.sandbox.world import planted

# Measures the detectors over nights of a planted world.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    with SandboxProcess(seed=1, properties=400, plant_share=0.5, missing_share=0) as sandbox:
        # Longer than the history that a reference price is compared with; and prices of the night before the last.
        one_stay = made(tmp_path_factory.mktemp("planted"), sandbox, (0, 18, 36, 37), of_a_kind=3, plain=12)
        # As many days without an offer as make a property quiet.
        nights = (0, 2, 3, 4)
        home = tmp_path_factory.mktemp("round_the_year")
        many_stays = made(home, sandbox, nights, of_a_kind=3, plain=12, questions=MANY_STAYS)
        home = tmp_path_factory.mktemp("cheap")
        cheap = made(home, sandbox, (4, 5), plain=CHEAP_PROPERTIES, questions=CHEAP_STAYS)
    return scores(one_stay) | scores(many_stays) | scores(cheap)


@pytest.mark.parametrize("rule", TRUTH)
def test_a_rule_finds_all_that_was_planted_and_nothing_else(scored, rule):
    score = scored[rule]
    assert score.expected >= 2
    assert (score.precision, score.recall) == (1.0, 1.0), (score.wrong, score.missed)


def test_every_relation_that_makes_flags_is_measured_and_every_kind_that_is_planted():
    wanted = {rule.name for rule in finding_rules().values() if rule.planted}
    assert wanted == set(TRUTH), "add it to tests/analytics/truth.py, or declare `planted = false` in rules.toml"
    kinds = frozenset().union(*(truth.must for truth in TRUTH.values()))
    assert kinds >= set(planted.MEANING)
