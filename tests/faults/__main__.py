"""`make test-faults`, or `PYTHONPATH=tests python -m faults [PART …] [--tries N] [--seed N] [--jobs N]`.

Prints what each fault came to, and ends with 1 where anything was lost, doubled or left broken. A run of all parts with
all tries is kept as the table of `tests/faults/README.md`.
"""

from __future__ import annotations

import argparse
import importlib
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from faults.lab import Lab
from faults.parts import Try
from faults.tally import Tally

PARTS = ("kills", "disk", "limits", "together", "clocks", "flips", "supplier")
TRIES = 200
_HERE = Path(__file__).parent
_BEGIN, _END = "<!-- table: written by `make test-faults` -->", "<!-- end of the table -->"


def compiled(folder: Path) -> Path | None:
    """Compile the shim; None where there is no C compiler. Raises CalledProcessError."""
    if not shutil.which("cc"):
        sys.stderr.write("There is no C compiler (cc): processes are killed at random instants only.\n")
        return None
    library = folder / "shim.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, _HERE / "shim.c", "-ldl"], check=True)
    return library


def run(tries: Sequence[Try], jobs: int, folder: Path) -> list[Tally]:
    """Run tries in so many labs side by side, and add up what came of them by fault, in their order."""
    shim = compiled(folder)
    with ExitStack() as stack:
        labs: queue.SimpleQueue[Lab] = queue.SimpleQueue()
        with ThreadPoolExecutor(jobs) as pool:
            opened = pool.map(lambda number: stack.enter_context(Lab(folder / f"lab-{number}", shim)), range(jobs))
            for lab in opened:
                labs.put(lab)
            return _added(pool.map(lambda one: _in_a_lab(labs, one), tries))


def _in_a_lab(labs: queue.SimpleQueue[Lab], one: Try) -> Tally:
    lab = labs.get()
    try:
        tally = one(lab)
    finally:
        labs.put(lab)
    for broken in tally.broken:
        sys.stderr.write(f"{broken}\n")
    return tally


def _added(tallies: Iterable[Tally]) -> list[Tally]:
    by_fault: dict[str, Tally] = {}
    for tally in tallies:
        by_fault.setdefault(tally.fault, Tally(tally.fault)).__iadd__(tally)
    return list(by_fault.values())


def table(tallies: Iterable[Tally]) -> str:
    """Return the table, as Markdown."""
    lines = [
        "| fault | tries | what happened | lost | doubled | peak memory, MB |",
        "| --- | --: | --- | --: | --: | --: |",
    ]
    for each in tallies:
        happened = ", ".join(f"{count} {what}" for what, count in sorted(each.happened.items()))
        lines.append(
            f"| {each.fault} | {each.tries} | {happened} | {each.lost} | {each.doubled} | {each.peak_mb:.0f} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Run the parts that are asked for."""
    asked = argparse.ArgumentParser(prog="make test-faults", description=__doc__.splitlines()[0])
    asked.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(PARTS)}; all, if none is named")
    asked.add_argument("--tries", type=int, default=TRIES, help="kills in all; fewer make other parts smaller, too")
    asked.add_argument("--seed", type=int, default=1, help="another seed kills at other instants")
    asked.add_argument("--jobs", type=int, default=2, help="lakes side by side")
    given = asked.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        asked.error(f"no such part: {', '.join(sorted(unknown))}")
    began, chance = time.monotonic(), random.Random(given.seed)  # noqa: S311 - instants, no secrets
    parts = [importlib.import_module(f"faults.parts.{name}") for name in given.parts or PARTS]
    tries = [one for part in parts for one in part.tries(given.tries, chance)]
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        tallies = run(tries, given.jobs, Path(folder))
    written = table(tallies)
    sys.stdout.write(f"{written}\n\n{len(tries)} tries in {time.monotonic() - began:.0f} s, seed {given.seed}\n")
    is_good = all(each.is_good for each in tallies)
    if is_good and not given.parts and given.tries == TRIES:
        readme = _HERE / "README.md"
        before, _, rest = readme.read_text(encoding="utf-8").partition(_BEGIN)
        readme.write_text(f"{before}{_BEGIN}\n\n{written}\n\n{_END}{rest.partition(_END)[2]}", encoding="utf-8")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
