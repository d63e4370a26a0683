"""`make bench-quick`: what the hot paths cost, to run before and after a change. Under a minute.

Each is CPU time as a multiple of `orjson.loads` of the same answers, all in one process and in turns, the least of
several rounds: so it hardly depends on the machine, or on what else that does. The first figures are kept in
`bench/quick.json`, and later runs are compared with them, until `--keep` puts new ones in their place.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from benchmarks.bodies import bodies, land_bodies
from benchmarks.history import load_nights
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
_ROUNDS, _PUBLICATIONS = 7, 2
# Two runs of the same code differ by so much on a machine that is busy.
_NOISE_PCT = 20


def measure(folder: Path) -> dict[str, float]:
    """Return the cost of each hot path, in `orjson.loads` of the answers."""
    lake, nights, texts = Lake(str(folder / "raw")), folder / "nights", folder / "bodies"
    land_bodies(lake, _BODIES)
    load_nights(Lake(str(nights)), _WORLD)
    texts.mkdir()
    for number, (_, _, body) in enumerate(bodies(_BODIES)):
        (texts / f"{number:05d}.json").write_bytes(body)
    publications = iter([shutil.copytree(nights, folder / f"nights-{number}") for number in range(_PUBLICATIONS)])
    # A path that changes what it works on is made ready anew each time.
    paths: dict[str, tuple[int, Callable[[], Callable[[], object]]]] = {
        "orjson": (_ROUNDS, lambda: orjson(str(texts))),
        "normalise and load": (_ROUNDS, lambda: normalise(str(lake.root), _BODIES, str(texts))),
        "plan": (_ROUNDS, lambda: planning(1, _PROPERTIES)),
        "publish": (_PUBLICATIONS, lambda: _publishing(Lake(str(next(publications))))),
    }
    least: dict[str, float] = {}
    for number in range(_ROUNDS):
        for name, (rounds, prepare) in paths.items():
            if number < rounds:
                work = prepare()
                began = time.process_time()
                work()
                cost = time.process_time() - began
                least[name] = min(cost, least.get(name, cost))
    reference = least.pop("orjson")
    return {name: cost / reference for name, cost in least.items()}


def _publishing(lake: Lake) -> Callable[[], object]:
    return lambda: publish(lake, _WORLD.sweep_id(0), _WORLD.started_at(0) + timedelta(hours=2), audit="passed")


def main() -> None:
    """Measure each hot path, and print it beside what is kept."""
    parser = argparse.ArgumentParser(prog="benchmarks.quick", description=__doc__)
    parser.add_argument("--against", type=Path, default=_KEPT, help="figures to compare with (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help=f"keep these figures as {_KEPT}")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        costs = measure(Path(folder))
    before = json.loads(given.against.read_text(encoding="utf-8")) if given.against.exists() else {}
    table = Table("hot path", "x orjson.loads", "kept", "change")
    for name, cost in costs.items():
        kept = before.get(name)
        change = 100 * (cost / kept - 1) if kept else 0.0
        colour = "red" if change > _NOISE_PCT else "green" if change < -_NOISE_PCT else ""
        said = f"[{colour}]{change:+.0f} %[/]" if colour else f"{change:+.0f} %" if kept else ""
        table.add_row(name, f"{cost:.3g}", f"{kept:.3g}" if kept else "", said)
    console = Console()
    console.print(table)
    console.print(f"Changes of less than {_NOISE_PCT} % are noise.", style="dim")
    if given.keep or not _KEPT.exists():
        _KEPT.parent.mkdir(exist_ok=True)
        _KEPT.write_text(json.dumps(costs, indent=1) + "\n", encoding="utf-8")
        console.print(f"Kept in {_KEPT}.", style="dim")


if __name__ == "__main__":
    main()
