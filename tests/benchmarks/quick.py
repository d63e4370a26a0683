"""`make bench-quick`: what the hot paths cost, to run before and after a change. Twenty CPU seconds.

Each is CPU time as a multiple of `orjson.loads` of the same answers, which runs right before and after it in the same
process: the median of such ratios over several rounds, with the least and the most. So the figures depend little on the
machine; other work on it shows as spread, and a path that waits for memory suffers more from it than `orjson.loads`
does. The first figures are kept in `bench/quick.json`, and later runs are compared with them, until `--keep` puts new
ones in their place. A change is marked where no ratio of one run lies within the spread of the other.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from benchmarks.bodies import bodies, land_bodies
from benchmarks.history import load_nights
from benchmarks.measuring import cost_of
from benchmarks.parts.growth import planning
from benchmarks.parts.normalise import nightaudit as normalise
from benchmarks.parts.normalise import orjson
from benchmarks.simulated import World
from rich.console import Console
from rich.table import Table

from pipeline.lake import Lake
from pipeline.publish import publish

_KEPT = Path("bench/quick.json")
_BODIES, _WORLD, _PROPERTIES = 32, World(20, 1), 3000
_ROUNDS, _PUBLICATIONS = 9, 4


def measure(folder: Path) -> dict[str, list[float]]:
    """Return what each hot path cost in each round, in `orjson.loads` of the answers."""
    lake, nights, texts = Lake(str(folder / "raw")), folder / "nights", folder / "bodies"
    land_bodies(lake, _BODIES)
    load_nights(Lake(str(nights)), _WORLD)
    texts.mkdir()
    for number, (_, _, body) in enumerate(bodies(_BODIES)):
        (texts / f"{number:05d}.json").write_bytes(body)
    publications = iter([shutil.copytree(nights, folder / f"nights-{number}") for number in range(_PUBLICATIONS)])
    # A path that changes its input is prepared again each time.
    paths: dict[str, tuple[int, Callable[[], Callable[[], float]]]] = {
        "normalise and load": (_ROUNDS, lambda: normalise(str(lake.root), _BODIES, str(texts))),
        "plan": (_ROUNDS, lambda: planning(1, _PROPERTIES)),
        "publish": (_PUBLICATIONS, lambda: _publishing(Lake(str(next(publications))))),
    }
    reference = orjson(str(texts))
    found: dict[str, list[float]] = {name: [] for name in paths}
    for number in range(_ROUNDS):
        for name, (rounds, prepare) in paths.items():
            if number < rounds:
                work = prepare()
                before, cost, after = (cost_of(each).cpu_s for each in (reference, work, reference))
                found[name].append(2 * cost / (before + after))
    return found


def has_changed(now: Sequence[float], kept: Sequence[float]) -> bool:
    """Whether two runs differ by more than they scatter: no ratio of one is within the other's spread."""
    return min(now) > max(kept) or max(now) < min(kept)


def _publishing(lake: Lake) -> Callable[[], float]:
    def work() -> float:
        publish(lake, _WORLD.sweep_id(0), _WORLD.started_at(0) + timedelta(hours=2), audit="passed")
        return 1

    return work


def _read(file: Path) -> dict[str, list[float]]:
    """Return kept figures; those of an older form, one number per path, are ignored."""
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {name: ratios for name, ratios in kept.items() if isinstance(ratios, list)}


def _said(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.3g} ({min(ratios):.3g} to {max(ratios):.3g})"


def main() -> None:
    """Measure each hot path, and print it next to the kept figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.quick", description=__doc__)
    parser.add_argument("--against", type=Path, default=_KEPT, help="figures to compare with (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help=f"keep these figures as {_KEPT}")
    given = parser.parse_args()
    if given.against != _KEPT and not given.against.is_file():
        parser.error(f"there is no {given.against} to compare with")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        found = measure(Path(folder))
    before = _read(given.against)
    table = Table("hot path", "x orjson.loads (least to most)", "kept", "change")
    for name, ratios in found.items():
        kept, change = before.get(name), ""
        if kept:
            percent = 100 * (statistics.median(ratios) / statistics.median(kept) - 1)
            colour = "red" if percent > 0 else "green"
            change = (
                f"[{colour}]{percent:+.0f} %[/]" if has_changed(ratios, kept) else f"{percent:+.0f} %, within spread"
            )
        table.add_row(name, _said(ratios), _said(kept) if kept else "", change)
    console = Console()
    console.print(table)
    if given.keep or not _read(_KEPT):
        _KEPT.parent.mkdir(exist_ok=True)
        _KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        console.print(f"Kept in {_KEPT}.", style="dim")


if __name__ == "__main__":
    main()
