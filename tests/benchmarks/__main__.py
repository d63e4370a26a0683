"""`make bench`, or `PYTHONPATH=tests python -m benchmarks [PART …] [--tiny] [--into FOLDER] [--readme]`.

Parts that are measured again replace their last results in the folder; the others stay. `--readme` measures nothing: it
takes the folder's results into `results.json` beside this module, where parts that were not measured keep their last
results, and writes the table of `README.md` there. It refuses results of `--tiny`, which say nothing about speed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import runpy
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from benchmarks.measuring import Result, Row, Size
from rich.console import Console
from rich.table import Table

PARTS = (
    "normalise",
    "fetch",
    "sweep",
    "growth",
    "publish",
    "night",
    "cluster",
    "spread",
    "disturbed",
    "queries",
    "start",
)
KEPT = Path(__file__).parent


def run(name: str, size: Size, console: Console) -> dict[str, Any]:
    """Run a part in a separate folder; return its results with the load average."""
    began, before = time.perf_counter(), os.getloadavg()[0]
    console.print(f"{name} …", style="dim")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        found: Result = importlib.import_module(f"benchmarks.parts.{name}").measure(size, Path(folder))
    seconds = time.perf_counter() - began
    if found.rows:
        console.print(_table(name, found.rows, seconds))
    for left_out in found.skipped:
        console.print(f"{name}, skipped: {left_out}", style="yellow")
    return {
        "size": size.name,
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": _commit(),
        "seconds": round(seconds),
        "load": [round(before, 1), round(os.getloadavg()[0], 1)],
        "rows": [asdict(row) for row in found.rows],
        "points": found.points,
        "skipped": found.skipped,
    }


def _commit() -> str:
    """Return the commit that is measured; empty outside of a checkout."""
    reported = subprocess.run(
        ["git", "-C", str(KEPT), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return reported.stdout.strip()


def machine() -> dict[str, object]:
    """Return a description of the machine."""
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def _table(name: str, rows: list[Row], seconds: float) -> Table:
    table = Table("what", "value", "spread", "target", "", "", title=f"{name} ({seconds:.0f} s)", title_justify="left")
    for row in rows:
        spread = "" if row.low is None or row.high is None else f"{row.low:,.3g} .. {row.high:,.3g}"
        mark = {True: "[green]reached[/]", False: "[red]missed[/]", None: ""}[row.reached]
        table.add_row(row.what, f"{row.value:,.4g} {row.unit}", spread, row.reach, mark, row.note)
    return table


def main() -> None:
    """Read the arguments, run, print, and write `bench.json` and `bench.svg`."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--tiny", action="store_true", help="only see that the parts run")
    parser.add_argument("--into", type=Path, default=Path("bench"), help="folder of the results (default: %(default)s)")
    parser.add_argument(
        "--readme", action="store_true", help="take the folder's results into tests/benchmarks/README.md"
    )
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    if given.readme:
        try:
            keep(given.into)
        except ValueError as refused:
            parser.error(str(refused))
        return
    # A table that is written to a file is not cut to a narrow screen.
    console, began = Console(width=None if sys.stdout.isatty() else 200), time.perf_counter()
    given.into.mkdir(parents=True, exist_ok=True)
    kept = given.into / "bench.json"
    before = json.loads(kept.read_text(encoding="utf-8")).get("parts", {}) if kept.exists() else {}
    for name in given.parts or PARTS:
        before[name] = run(name, Size(given.tiny), console)
        # Written after each part: one that fails, or is given up, takes nothing along.
        said = {"machine": machine(), "parts": {part: before[part] for part in PARTS if part in before}}
        kept.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    if points := [point for part in PARTS if part in before for point in before[part]["points"]]:
        from benchmarks.picture import draw

        draw(points, given.into / "bench.svg")
    console.print(f"{machine()}; {(time.perf_counter() - began) / 60:.0f} min in all; written to {given.into}/")


def keep(folder: Path) -> None:
    """Take the results into README.md. Raises ValueError if they say too little; see `merged`."""
    said = merged(folder, KEPT)
    (KEPT / "results.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    from benchmarks.picture import draw

    draw([point for part in said["parts"].values() for point in part["points"]], KEPT / "results.svg")
    runpy.run_path(str(KEPT.parent / "docs" / "test_readme.py"), run_name="__main__")


def merged(folder: Path, kept: Path) -> dict[str, Any]:
    """Return the results of a folder, and the kept ones of parts that were not measured again.

    Raises ValueError if a part is missing from both, was not measured at full size or is not compared with a target.
    """
    measured = json.loads((folder / "bench.json").read_text(encoding="utf-8"))
    if small := [name for name, part in measured["parts"].items() if part.get("size") != Size(is_tiny=False).name]:
        raise ValueError(f"not measured at full size: {', '.join(small)}; measure them again without --tiny")
    last = kept / "results.json"
    parts = json.loads(last.read_text(encoding="utf-8"))["parts"] if last.exists() else {}
    parts |= measured["parts"]
    if missing := [name for name in PARTS if name not in parts]:
        raise ValueError(f"not measured: {', '.join(missing)}; the table would be silent about them")
    if not any("look-up" in row["what"] and row["reach"] for row in parts["queries"]["rows"]):
        raise ValueError("queries were not run on a complete history; see NIGHTAUDIT_BENCH_HISTORY in README.md")
    return {"machine": measured["machine"], "parts": {name: parts[name] for name in PARTS}}


if __name__ == "__main__":
    main()
