"""How well each rule finds what is planted, in clean worlds and next to confounders.

`python tests/benchmarks/detector_truth.py` prints the table of tests/benchmarks/README.md: precision and recall of each
rule over cells (property and market), with Wilson's interval of 95%, added up over seeds. `--seeds` and `--worlds` take
some, and `--of-a-kind` says how many properties of each planted kind a world has. A cell that was never answered is not
expected; one whose past was not answered often enough is, and is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "analytics"))

from confounders import CONFOUNDERS, Confounder, course_of
from planted_world import CHEAP_PROPERTIES, CHEAP_STAYS, MANY_STAYS, ONE_STAY, PlantedWorld, made
from truth import TRUTH, Score, cells, scores

from pipeline.sandbox.server.launch import SandboxProcess

# Weeks for what needs a history; days for what needs stays of a year, and a few more than make a property quiet.
NIGHTS = {ONE_STAY: (0, 18, 36, 37), MANY_STAYS: (0, 2, 3, 4, 5), CHEAP_STAYS: (4, 5)}
PLAIN = {ONE_STAY: 8, MANY_STAYS: 8, CHEAP_STAYS: CHEAP_PROPERTIES}
NAMES = {"one stay": ONE_STAY, "many stays": MANY_STAYS, "cheap stays": CHEAP_STAYS}
SEEDS = (1, 2, 3, 4, 5)
GOALS = {"clean": (0.99, 0.9)}
OTHER_GOALS = (0.95, 0.9)

Counts = dict[str, list[int]]
"""By rule: cells expected, found, wrong, missed."""


def measured(name: str, seed: int, asked: str, of_a_kind: int) -> tuple[Counts, list[str]]:
    """Make one world and compare the findings with the plants; return the counts, and what went wrong."""
    confounder, questions = CONFOUNDERS[name], NAMES[asked]
    nights = NIGHTS[questions]
    with (
        SandboxProcess(seed=seed, properties=400, plant_share=0.5, missing_share=0.0) as sandbox,
        course_of(confounder, sandbox, nights[-1]) as course,
        tempfile.TemporaryDirectory() as home,
    ):
        plain = PLAIN[questions]
        world = made(
            Path(home),
            sandbox,
            nights,
            of_a_kind=of_a_kind,
            plain=plain,
            questions=questions,
            course=course,
            attempts=1,
        )
        seen = {rule: _without_unseen(rule, score, confounder) for rule, score in scores(world).items()}
        found = {rule: _with_wide(world, rule, score, confounder.wide) for rule, score in seen.items()}
        if "fx_markup" in found:
            found["fx_markup"] = _without_hidden(world, found["fx_markup"], confounder)
    counts = {rule: [score.expected, score.found, len(score.wrong), len(score.missed)] for rule, score in found.items()}
    reported = [
        f"{name}, seed {seed}: {rule}: {kind} {sorted(which, key=repr)[:6]}"
        for rule, score in found.items()
        for kind, which in (("wrong", score.wrong), ("missed", score.missed))
        if which
    ]
    return counts, reported


def _with_wide(world: PlantedWorld, rule: str, score: Score, wide: frozenset[tuple[str, str]]) -> Score:
    """Return a score in which a market is one cell, where one finding about all of it is what is right."""
    markets = {market for each, market in wide if each == rule}
    if not markets:
        return score
    query = (
        f"SELECT property_id, market FROM report.finding_case WHERE rule = '{rule}' AND scope = 'market' "
        "AND closed_at IS NULL"
    )
    reported = {market for _, market in cells(world, query)}
    # Without a case of the market, each flag of its properties is a call about the wrong thing.
    wrong = frozenset(cell for cell in score.wrong if cell[1] not in markets & reported)
    missed = frozenset(cell for cell in score.missed if cell[1] not in markets) | {
        (0, market) for market in markets - reported
    }
    right = score.found - len(score.wrong)
    return Score(score.expected + len(markets), right + len(wrong) + len(markets & reported), wrong, missed)


def _without_unseen(rule: str, score: Score, confounder: Confounder) -> Score:
    """Return a score that does not expect what cannot be seen."""
    missed = frozenset(
        cell for cell in score.missed if not ((rule, cell[1]) in confounder.unseen and confounder.is_unseen_at(cell[0]))
    )
    return Score(score.expected - len(score.missed) + len(missed), score.found, score.wrong, missed)


def _without_hidden(world: PlantedWorld, score: Score, confounder: Confounder) -> Score:
    """Return the score of `fx_markup` where the mark-up of some home currencies is none, and wrong to find.

    A market that was not answered in both currencies on the last night keeps what was found at the rates before.
    """
    homes = {identifier for identifier, hotel in world.hotels.items() if hotel.home_currency in confounder.hides}
    answered = set(world.markets) - set(confounder.besides)
    hidden = {(identifier, market) for identifier in homes for market in answered}
    reported = cells(world, "SELECT DISTINCT property_id, market FROM report.flag WHERE rule = 'fx_markup'")
    planted = (reported - score.wrong) | score.missed
    return Score(
        score.expected - len(hidden & planted), score.found, score.wrong | (reported & hidden), score.missed - hidden
    )


def interval(hits: int, of: int) -> str:
    """Return a share with Wilson's interval of 95%, as percentages."""
    if not of:
        return "-"
    z = 1.96
    share, square = hits / of, z * z / of
    middle, half = share + square / 2, z * math.sqrt(share * (1 - share) / of + square / (4 * of))
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return f"{share:.3f} ({max(low, 0):.2f} to {min(high, 1):.2f})"


def main(given: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--worlds", nargs="+", choices=CONFOUNDERS, default=tuple(CONFOUNDERS))
    parser.add_argument("--asked", nargs="+", choices=NAMES, default=tuple(NAMES))
    parser.add_argument("--of-a-kind", type=int, default=2, help="properties of each planted kind in a world")
    parser.add_argument("--keep", type=Path, help="file that counts are kept in, and added to by the next run")
    options = parser.parse_args(given)
    kept: dict[str, dict[str, Any]] = {}
    if options.keep and options.keep.exists():
        kept = json.loads(options.keep.read_text())
    for seed in options.seeds:
        for name in options.worlds:
            for asked in options.asked:
                began = time.perf_counter()
                counts, reported = measured(name, seed, asked, options.of_a_kind)
                kept.setdefault(f"{name}|{seed}|{asked}", {}).update(counts)
                if options.keep:
                    options.keep.write_text(json.dumps(kept))
                took = f"{name}, seed {seed}, {asked}: {time.perf_counter() - began:.0f} s"
                sys.stderr.write("\n".join([*reported, took, ""]))
    sys.stdout.write("\n".join([*table(kept), ""]))


def table(kept: dict[str, dict[str, Any]]) -> list[str]:
    """Return the table in Markdown, a row a rule and world."""
    lines = ["| Rule | World | Cells | Precision | Recall |", "|---|---|---|---|---|"]
    for rule in TRUTH:
        for name in CONFOUNDERS:
            rows = [counts[rule] for key, counts in kept.items() if key.split("|")[0] == name and rule in counts]
            if not rows:
                continue
            expected, found, wrong, missed = (sum(column) for column in zip(*rows, strict=True))
            shares = interval(found - wrong, found), interval(expected - missed, expected)
            precision = 1 - wrong / found if found else 1.0
            recall = 1 - missed / expected if expected else 1.0
            least, least_recall = GOALS.get(name, OTHER_GOALS)
            mark = "" if precision >= least and recall >= least_recall else " **below**"
            lines.append(f"| `{rule}` | {name}{mark} | {expected} | {shares[0]} | {shares[1]} |")
    return lines


if __name__ == "__main__":
    main()
