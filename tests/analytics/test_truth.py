"""Measured truth: on clean data each rule finds what was planted, all of it and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted_world import made
from truth import TRUTH, scores

from pipeline.publish.analytics import DETECTORS
from pipeline.relations import relation
from pipeline.sandbox.process import SandboxProcess


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    with SandboxProcess(seed=1, properties=400, plant_share=0.5, missing_share=0) as sandbox:
        # Longer than the history that a reference price must be held against; and prices of the night before the last.
        return scores(made(tmp_path_factory.mktemp("planted"), sandbox, (0, 18, 36, 37), of_a_kind=3, plain=12))


@pytest.mark.parametrize("rule", TRUTH)
def test_a_rule_finds_all_that_was_planted_and_nothing_else(scored, rule):
    score = scored[rule]
    assert score.expected >= 2
    assert (score.precision, score.recall) == (1.0, 1.0), (score.wrong, score.missed)


def test_every_rule_that_something_is_planted_for_is_measured():
    # What nothing is planted for: time has to pass, or a floor to be compared with a price of the user's.
    told = " ".join(relation(*detector.split("/")).sql for detector in DETECTORS)
    assert all(f"'{rule}'" in told for rule in TRUTH)
