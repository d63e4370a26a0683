"""How well each rule does against what is planted, clean and under noise: `python tests/benchmarks/detector_truth.py`.

Prints precision and recall of each rule over cells (property and market). Clean: every answer whole; prices of markets
differ by up to 0.4 percent, houses round to whole units, promotions come and go. Missing: a third of the houses lack
fields. Failing: three searches in ten end in an error or an answer that cannot be read, after all attempts. A cell that
was never answered is not expected; one whose past was not answered often enough is, and counts as missed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "analytics"))

from planted_world import CHEAP_HOUSES, CHEAP_STAYS, MANY_STAYS, ONE_STAY, made
from truth import TRUTH, Score, scores

from pipeline.sandbox.server.launch import SandboxProcess

# Weeks for what needs a history; days for what needs stays of the whole year, and a few more than make a house quiet.
NIGHTS = {ONE_STAY: (0, 12, 24, 36, 37), MANY_STAYS: (0, 2, 3, 4, 5), CHEAP_STAYS: (4, 5)}
PLAIN = {ONE_STAY: 12, MANY_STAYS: 12, CHEAP_STAYS: CHEAP_HOUSES}
GARBAGE = ["html_200", "cut_json", "empty_200", "wrong_types"]
WORLDS = {
    "clean": ({"missing_share": 0.0}, {}),
    "missing": ({"missing_share": 0.33}, {}),
    "failing": (
        {"missing_share": 0.0},
        {"status_500_rate": 0.15, "garbage_rate": 0.15, "garbage_kinds": GARBAGE, "by": "content"},
    ),
}


def measured(name: str) -> dict[str, Score]:
    """Make one of the worlds and hold what is found against what was planted."""
    given, faults = WORLDS[name]
    found = {}
    with SandboxProcess(seed=1, properties=400, plant_share=0.5, faults=faults, **given) as sandbox:
        for questions, nights in NIGHTS.items():
            with tempfile.TemporaryDirectory() as home:
                plain = PLAIN[questions]
                world = made(Path(home), sandbox, nights, of_a_kind=3, plain=plain, questions=questions, attempts=1)
                found |= scores(world)
    return found


def main() -> None:
    """Print the table."""
    found = {}
    for name in WORLDS:
        began = time.perf_counter()
        found[name] = measured(name)
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)  # noqa: T201 - what it is for
    print("| rule | " + " | ".join(f"{name}: cells, precision, recall" for name in WORLDS) + " |")  # noqa: T201 - a table for people
    print("|---|" + "---|" * len(WORLDS))  # noqa: T201 - a table for people
    for rule in TRUTH:
        parts = [found[name][rule] for name in WORLDS]
        told = " | ".join(f"{each.expected}, {each.precision:.3f}, {each.recall:.3f}" for each in parts)
        print(f"| {rule} | {told} |")  # noqa: T201 - a table for people


if __name__ == "__main__":
    main()
