"""A lake to inject faults into: its undisturbed nights, step by step, and commands that a fault hits.

Each lab has a lake, a sandbox and a warm process of its own, so that labs work side by side. The lake lies at one path
for as long as the lab lives, because the published file names its files by their path.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import pyarrow.parquet as pq
from faults.rows import Held, held
from faults.warm import Command, Ended

from pipeline.sample.generate import FOLDER
from pipeline.sandbox.server.launch import SandboxProcess

SEED = 1
PROPERTIES = 60
FIRST = datetime.fromisoformat("2030-01-01T02:00:00+00:00")
SPEC = """
[properties]
sandbox = 12
[stays]
nights = [1]
anchor = "calendar"
[[stays.horizon]]
to_days = 2
every_days = 1
[ask]
markets = ["GB", "SE"]
product_types = ["Hotel"]
parties = ["2"]
operations = ["multi", "single"]
single_properties = 2
batch = 1
"""
# 2 markets x 2 days x (12 multi + 2 single); of a night.
SEARCHES = 56
_OF_A_NIGHT = ("sweep", "audit", "publish", "report", "lake")
# Each continues from the one before it, except a rebuild and a load, which continue from a report as `lake` does.
STEPS = (*_OF_A_NIGHT, "rebuild", "load")
_AFTER = {
    "sweep": "before",
    "audit": "sweep",
    "publish": "audit",
    "report": "publish",
    "lake": "report",
    "rebuild": "report",
    "load": "report",
}
ARGV = {"lake": ("lake", "--apply"), "load": ("load", "rates", str(FOLDER / "eurofxref-hist.csv"))}
# Files that say who is writing, or hold what a session spills: no part of what a lake holds.
_PASSING = (".lock", ".lock.note", ".spill")


class Lab:
    """A lake that is put back to any step of its second night, and a way to run commands over it."""

    def __init__(self, folder: Path, shim: Path | None) -> None:
        self.folder = folder
        self.lake = folder / "lake"
        folder.mkdir(parents=True)
        (folder / "spec.toml").write_text(SPEC, encoding="utf-8")
        self._sandbox = SandboxProcess(seed=SEED, night=0, properties=PROPERTIES, today=FIRST.date(), clock=FIRST)
        self._warm = subprocess.Popen(
            [sys.executable, "-m", "faults.warm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment() | ({"LD_PRELOAD": str(shim)} if shim else {}),
            # A Ctrl-C is meant for the suite, which lets the command in hand come to its end.
            start_new_session=True,
        )
        self.clock = FIRST
        self.undisturbed: dict[str, Held] = {}
        self.counted: dict[str, Ended] = {}

    def __enter__(self) -> Lab:
        self._sandbox.start()
        assert self._warm.stdout is not None
        assert self._warm.stdout.readline() == "ready\n"
        self._make_nights()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._warm.stdin is not None
        self._warm.stdin.close()
        self._warm.wait(30)
        self._sandbox.stop()

    def _make_nights(self) -> None:
        """Make two nights, and keep the lake as it is before and after each step of the second."""
        for step in _OF_A_NIGHT:
            self.must(*self.argv(step))
        self.turn_to(1)
        self._keep("before")
        for step in STEPS:
            self.back_to(self.before(step))
            self.counted[step] = self.must(*self.argv(step))
            self._keep(step)

    def turn_to(self, night: int, clock: datetime | None = None) -> None:
        """Set clock and sandbox to a night; `clock` is its instant, unless it is a day after the previous one."""
        self.clock = clock or FIRST + timedelta(days=night)
        self._sandbox.control("night", {"night": night, "today": self.clock.date().isoformat()})

    def _keep(self, step: str) -> None:
        shutil.copytree(self.lake, self.folder / f"after-{step}", ignore=shutil.ignore_patterns(*_PASSING))
        self.undisturbed[step] = held(self.lake)

    def back_to(self, step: str) -> None:
        """Restore the lake to its state after a step of the undisturbed second night."""
        shutil.rmtree(self.lake, ignore_errors=True)
        shutil.copytree(self.folder / f"after-{step}", self.lake)

    def held(self, step: str) -> Held:
        """Read the content of the lake, which may equal that after a step of the undisturbed night."""
        return held(self.lake, (self.folder / f"after-{step}", self.undisturbed[step]))

    def before(self, step: str) -> str:
        """Return the step before a step."""
        return _AFTER[step]

    # Commands ---------------------------------------------------------------------------------------------

    def run(
        self, *argv: str, clock: datetime | None = None, env: dict[str, str] | None = None, **befalls: Any
    ) -> list[Ended]:
        """Run a command, which a fault may hit; see `Command`."""
        lent = {
            "base_url": self._sandbox.base_url,
            "client_id": self._sandbox.client_id,
            "client_secret": self._sandbox.client_secret,
        }
        settings = {
            "NIGHTAUDIT_LAKE": str(self.lake),
            "NIGHTAUDIT_SPEC": str(self.folder / "spec.toml"),
            "NIGHTAUDIT_SANDBOX_CLOCK": (clock or self.clock).isoformat(),
            "NIGHTAUDIT_SANDBOX_SEED": str(SEED),
            "NIGHTAUDIT_SANDBOX_PROPERTIES": str(PROPERTIES),
            "NIGHTAUDIT_WORKERS": "1",
            "NIGHTAUDIT_OBSERVATION_NIGHTS": "1",
            "NIGHTAUDIT_RAW_NIGHTS": "1",
            "NIGHTAUDIT_GRACE_HOURS": "0",
            "SHARED_SANDBOX": json.dumps(lent),
        }
        command = Command(list(argv), settings | (env or {}), str(self.lake), str(self.folder / "said"))
        assert self._warm.stdin is not None
        assert self._warm.stdout is not None
        self._warm.stdin.write(json.dumps(asdict(replace(command, **befalls))) + "\n")
        self._warm.stdin.flush()
        return [Ended(**ended) for ended in json.loads(self._warm.stdout.readline())]

    def must(self, *argv: str) -> Ended:
        """Run a command that must succeed. Raises AssertionError with its output."""
        (ended,) = self.run(*argv)
        assert ended.code == 0, f"{argv} ended with {ended.code}:\n{ended.said[-3000:]}"
        return ended

    def argv(self, step: str) -> tuple[str, ...]:
        """Return the command that begins or continues a step, as a user would find it from the lake."""
        begun = sorted(file.parent.name for file in self.lake.glob("raw/*/sweep.json"))
        return ("resume", begun[-1]) if step == "sweep" and len(begun) > 1 else ARGV.get(step, (step,))

    def address_space_mb(self) -> int:
        """Return the address space that each command begins with."""
        return psutil.Process(self._warm.pid).memory_info().vms // 1_000_000

    # What came of it --------------------------------------------------------------------------------------

    def served(self) -> int:
        """Count the searches that the sandbox has answered."""
        counts = self._sandbox.control("served")["requests"]
        return sum(sum(outcomes.values()) for outcomes in counts.values())

    def landed(self) -> int:
        """Count the searches of the second night that have landed."""
        sweeps = sorted(self.lake.glob("raw/*/sweep.json"))[1:]
        return sum(pq.read_metadata(file).num_rows for sweep in sweeps for file in sweep.parent.glob("*.parquet"))


def environment() -> dict[str, str]:
    """Return the environment of a process of the suite: no setting of ours is taken over."""
    root = Path(__file__).parents[2]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTAUDIT_")}
    return kept | {"PYTHONPATH": f"{root / 'tests'}:{root}"}
