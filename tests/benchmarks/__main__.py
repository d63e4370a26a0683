"""`make bench`, or `PYTHONPATH=tests python -m benchmarks [PART …] [--tiny] [--into FOLDER]`."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import psutil
from benchmarks.measuring import Result, Row, Size
from rich.console import Console
from rich.table import Table

PARTS = ("normalise", "fetch", "sweep", "publish", "queries", "start")


def run(names: list[str], size: Size, console: Console) -> Result:
    """Run the parts, one after the other; each has a folder of its own that goes when it has ended."""
    whole = Result()
    for name in names:
        began = time.perf_counter()
        console.print(f"{name} …", style="dim")
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            found = importlib.import_module(f"benchmarks.parts.{name}").measure(size, Path(folder))
        console.print(_table(name, found.rows, time.perf_counter() - began))
        whole.rows += found.rows
        whole.points += found.points
    return whole


def machine() -> dict[str, object]:
    """Return what the figures were made on."""
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "load": round(os.getloadavg()[0], 1),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def _table(name: str, rows: list[Row], seconds: float) -> Table:
    table = Table("what", "value", "spread", "to reach", "", title=f"{name} ({seconds:.0f} s)", title_justify="left")
    for row in rows:
        spread = "" if row.low is None or row.high is None else f"{row.low:,.3g} .. {row.high:,.3g}"
        mark = {True: "[green]reached[/]", False: "[red]missed[/]", None: ""}[row.reached]
        table.add_row(row.what, f"{row.value:,.4g} {row.unit}", spread, row.reach, mark or row.note)
    return table


def main() -> None:
    """Read the arguments, run, print, and write `bench.json` and `bench.svg`."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--tiny", action="store_true", help="only see that the parts run")
    parser.add_argument("--into", type=Path, default=Path("bench"), help="folder of the results (default: %(default)s)")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    console = Console()
    result = run(given.parts or list(PARTS), Size(given.tiny), console)
    given.into.mkdir(parents=True, exist_ok=True)
    said = {"machine": machine(), "rows": [asdict(row) for row in result.rows], "points": result.points}
    (given.into / "bench.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    if result.points:
        from benchmarks.picture import draw

        draw(result.points, given.into / "bench.svg")
    console.print(f"{machine()}; written to {given.into}/")


if __name__ == "__main__":
    main()
