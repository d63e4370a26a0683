"""How well each rule finds what is planted, in clean worlds and next to confounders.

`python tests/benchmarks/detector_truth.py` prints the table of tests/benchmarks/README.md: precision and recall of each
rule over cells (property and market), with Wilson's interval of 95%, added up over seeds. `--seeds`, `--worlds` and
`--asked` take some, and `--of-a-kind` says how many properties of each planted kind a world has. A cell that was never
answered is not expected; one whose past was not answered often enough is, and is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

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

# The worlds that a column of the table adds up, and the least precision and recall in it.
CLEAN, ALL_AT_ONCE = "clean", "nine at once"
COLUMNS = {
    "Clean": ((CLEAN,), (0.99, 0.9)),
    "One confounder": (tuple(name for name in CONFOUNDERS if name not in {CLEAN, ALL_AT_ONCE}), (0.95, 0.9)),
    "Nine at once": ((ALL_AT_ONCE,), (0.95, 0.9)),
}
# Enough for 30 cells of each rule in each column.
OF_A_KIND = {CLEAN: 14, ALL_AT_ONCE: 14}
OF_ANOTHER_KIND = 2
WORKERS = 2

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
    parser.add_argument("--of-a-kind", type=int, help="properties of each planted kind in a world")
    parser.add_argument("--workers", type=int, default=WORKERS, help="worlds that are made at the same time")
    options = parser.parse_args(given)
    kept: dict[str, list[Counts]] = {}
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        waiting = {
            pool.submit(_timed, name, seed, asked, options.of_a_kind or OF_A_KIND.get(name, OF_ANOTHER_KIND)): name
            for seed in options.seeds
            for name in options.worlds
            for asked in options.asked
        }
        try:
            for done in as_completed(waiting):
                counts, reported = done.result()
                kept.setdefault(waiting[done], []).append(counts)
                sys.stderr.write("\n".join([*reported, ""]))
                sys.stderr.flush()
        except (KeyboardInterrupt, BrokenProcessPool):
            # The workers get Ctrl-C too. The table so far is printed: it took up to an hour.
            pool.shutdown(cancel_futures=True)
    sys.stderr.write(f"Measured {sum(map(len, kept.values()))} of {len(waiting)}.\n")
    sys.stdout.write("\n".join([*table(kept), ""]))


def _timed(name: str, seed: int, asked: str, of_a_kind: int) -> tuple[Counts, list[str]]:
    began = time.perf_counter()
    counts, reported = measured(name, seed, asked, of_a_kind)
    return counts, [*reported, f"{name}, seed {seed}, {asked}: {time.perf_counter() - began:.0f} s"]


def table(kept: Mapping[str, Sequence[Counts]]) -> list[str]:
    """Return the table in Markdown, one row per rule; what does not reach its goal is bold."""
    columns = {title: of for title, of in COLUMNS.items() if any(name in kept for name in of[0])}
    lines = [
        f"| Rule | {' | '.join(f'{title}: cells | precision | recall' for title in columns)} |",
        f"|---|{'---|' * 3 * len(columns)}",
    ]
    for rule in TRUTH:
        cells_of_row = [_shares(rule, kept, *of) for of in columns.values()]
        if any(cells_of_row):
            lines.append(f"| `{rule}` | {' | '.join(each or '- | - | -' for each in cells_of_row)} |")
    return lines


def _shares(
    rule: str, kept: Mapping[str, Sequence[Counts]], worlds: Sequence[str], goals: tuple[float, float]
) -> str | None:
    """Return the number of cells of a rule in some worlds, with its precision and recall; None: not measured."""
    rows = [counts[rule] for name in worlds for counts in kept.get(name, ()) if rule in counts]
    if not rows:
        return None
    expected, found, wrong, missed = (sum(column) for column in zip(*rows, strict=True))
    shares = []
    for hits, of, goal in ((found - wrong, found, goals[0]), (expected - missed, expected, goals[1])):
        said = interval(hits, of)
        shares.append(f"**{said}**" if of and hits / of < goal else said)
    return f"{expected} | {shares[0]} | {shares[1]}"


if __name__ == "__main__":
    main()
