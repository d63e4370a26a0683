"""`make test-faults`, or `PYTHONPATH=tests python -m faults [PART …]` with `--tries`, `--seed`, `--jobs` or `--steps`.

Prints a line for each try as it ends, then the results of each fault, and ends with 1 if anything was lost, doubled or
left broken. Stopped (Ctrl-C), it prints the table of what was done. A run of all parts with all tries is kept as the
table of `tests/faults/README.md`.
"""

from __future__ import annotations

import argparse
import importlib
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from pathlib import Path

from faults.lab import STEPS, Lab
from faults.parts import TRIES, Counted, Try
from faults.tally import Tally

PARTS = ("commits", "kills", "disk", "limits", "together", "clocks", "flips", "supplier")
_HERE = Path(__file__).parent
_BEGIN, _END = "<!-- table: written by `make test-faults` -->", "<!-- end of the table -->"


def compiled(folder: Path) -> Path | None:
    """Compile the shim; None if there is no C compiler. Raises CalledProcessError."""
    if not shutil.which("cc"):
        sys.stderr.write("There is no C compiler (cc): processes are killed at random instants only.\n")
        return None
    library = folder / "shim.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, _HERE / "shim.c", "-ldl"], check=True)
    return library


class Stopped(Exception):
    """The suite was stopped (Ctrl-C) before its last try."""


def run(chosen: Callable[[Counted], Mapping[int, Try]], jobs: int, folder: Path, done: dict[int, Tally]) -> None:
    """Run the tries that are chosen once the labs' nights are made, side by side; what came of each goes into `done`.

    Raises Stopped on SIGINT, after the tries in hand were ended and forgotten.
    """
    shim = compiled(folder)
    labs: queue.SimpleQueue[Lab] = queue.SimpleQueue()
    with ExitStack() as stack, ThreadPoolExecutor(jobs) as pool:
        try:
            for lab in pool.map(lambda number: stack.enter_context(Lab(folder / f"lab-{number}", shim)), range(jobs)):
                labs.put(lab)
            tries = chosen(lab.counted)
            places = {pool.submit(_in_a_lab, labs, one): place for place, one in tries.items()}
            for future in as_completed(places):
                tally = done[places[future]] = future.result()
                _say(f"{len(done)}/{len(tries)} {tally.fault}: {'; '.join(tally.said) or _happened(tally)}")
                for broken in tally.broken:
                    _say(broken)
        except KeyboardInterrupt:
            # `timeout` sends its signal to the process and to its group, which is heard twice.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            _say("Stopping: what is in hand is ended first.")
            pool.shutdown(cancel_futures=True)
            raise Stopped from None


def _in_a_lab(labs: queue.SimpleQueue[Lab], one: Try) -> Tally:
    lab = labs.get()
    try:
        return one(lab)
    finally:
        labs.put(lab)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def by_fault(tallies: Iterable[Tally]) -> list[Tally]:
    """Add up tries of the same fault, in the order of the faults."""
    added: dict[str, Tally] = {}
    for tally in tallies:
        added.setdefault(tally.fault, Tally(tally.fault)).__iadd__(tally)
    return list(added.values())


def _happened(tally: Tally) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(tally.happened.items()))


def table(tallies: Iterable[Tally]) -> str:
    """Return the table, as Markdown."""
    lines = [
        "| fault | tries | what happened | lost | doubled | peak memory, MB |",
        "| --- | --: | --- | --: | --: | --: |",
    ]
    lines += [
        f"| {each.fault} | {each.tries} | {_happened(each)} | {each.lost} | {each.doubled} | {each.peak_mb:.0f} |"
        for each in tallies
    ]
    return "\n".join(lines)


def main() -> int:
    """Run the requested parts."""
    asked = argparse.ArgumentParser(prog="make test-faults", description=__doc__.splitlines()[0])
    asked.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(PARTS)}; all, if none is named")
    asked.add_argument("--tries", type=int, default=TRIES, help="kills in all; fewer make other parts smaller, too")
    asked.add_argument("--seed", type=int, default=1, help="another seed kills at other instants")
    asked.add_argument("--jobs", type=int, default=2, help="lakes side by side")
    asked.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS, help="hit these steps only")
    given = asked.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        asked.error(f"no such part: {', '.join(sorted(unknown))}")
    began, chance = time.monotonic(), random.Random(given.seed)  # noqa: S311 - instants, no secrets
    parts = [importlib.import_module(f"faults.parts.{name}") for name in given.parts or PARTS]
    planned: dict[int, Try] = {}
    done: dict[int, Tally] = {}

    def chosen(counted: Counted) -> Mapping[int, Try]:
        hit = {step: counted[step] for step in given.steps}
        tries = list(enumerate(one for part in parts for one in part.tries(given.tries, chance, hit)))
        # So that a suite which is stopped has tried something of each fault.
        chance.shuffle(tries)
        planned.update(tries)
        return planned

    # What stops it from outside, as `timeout` does, is no other thing than Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, suppress(Stopped):
        run(chosen, given.jobs, Path(folder), done)
    tallies = by_fault(done[place] for place in sorted(done))
    written, is_whole = table(tallies), bool(planned) and len(done) == len(planned)
    ended = f"{len(done)} of {len(planned)} tries in {time.monotonic() - began:.0f} s, seed {given.seed}"
    sys.stdout.write(f"{written}\n\n{ended}{'' if is_whole else '; stopped'}\n")
    is_good = all(each.is_good for each in tallies)
    if is_good and is_whole and not given.parts and given.tries == TRIES and set(given.steps) == set(STEPS):
        readme = _HERE / "README.md"
        before, _, rest = readme.read_text(encoding="utf-8").partition(_BEGIN)
        readme.write_text(f"{before}{_BEGIN}\n\n{written}\n\n{_END}{rest.partition(_END)[2]}", encoding="utf-8")
    return (0 if is_whole else 130) if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
