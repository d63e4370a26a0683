"""Sweeps of a supplier with all of its faults, one after the other in one process, and its resources afterwards.

`python -m faults.soak FOLDER SECONDS` writes a line of JSON after each sweep. It ends with 1 where the statuses of
a sweep's cells do not add up to the planned ones.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psutil
from faults.lab import FIRST, PROPERTIES, SEED, SPEC

from pipeline.cli.commands import app
from pipeline.domain.errors import NightauditError
from pipeline.lake import Lake
from pipeline.night.overview import sweep_rows
from pipeline.sandbox.faults.faults import GARBAGE_KINDS
from pipeline.sandbox.server import launch
from pipeline.sweep import normalisers

_FAULTS = {
    "status_500_rate": 0.05,
    "status_503_rate": 0.05,
    "rate_429": 0.05,
    "reset_rate": 0.05,
    "truncate_rate": 0.05,
    "hang_rate": 0.02,
    "garbage_rate": 0.25,
    "garbage_kinds": GARBAGE_KINDS,
    "retry_after_s": 0,
    "hang_s": 3,
    "bomb_mb": 16,
    "huge_mb": 16,
}
_STATUSES = ("offered", "no_offer", "absent", "rejected", "failed", "not_swept")


class _BadSandbox(launch.SandboxProcess):
    """The sandbox that a sweep starts for itself, with its faults."""

    def __init__(self, *given, **named) -> None:
        super().__init__(*given, **named | {"faults": _FAULTS})


def main(folder: Path, seconds: float) -> int:
    """Sweep until the time has passed."""
    # As in the suite: no process is started for each sweep, whose memory would not be this one's.
    normalisers.ProcessPoolExecutor = lambda workers, *_, **__: ThreadPoolExecutor(workers)
    launch.SandboxProcess = _BadSandbox  # type: ignore[misc]
    logging.disable(logging.WARNING)
    folder.mkdir(parents=True)
    (folder / "spec.toml").write_text(SPEC, encoding="utf-8")
    os.environ |= {
        "NIGHTAUDIT_LAKE": str(folder / "lake"),
        "NIGHTAUDIT_SPEC": str(folder / "spec.toml"),
        "NIGHTAUDIT_SANDBOX_SEED": str(SEED),
        "NIGHTAUDIT_SANDBOX_PROPERTIES": str(PROPERTIES),
        "NIGHTAUDIT_WORKERS": "1",
        "NIGHTAUDIT_ATTEMPTS": "3",
        "NIGHTAUDIT_READ_TIMEOUT_SECONDS": "1",
        "NIGHTAUDIT_MAX_BODY_MB": "4",
        "NIGHTAUDIT_TOLERATED_FAILED_SHARE": "1",
    }
    process, began, number = psutil.Process(), time.monotonic(), 0
    while time.monotonic() - began < seconds:
        os.environ["NIGHTAUDIT_SANDBOX_CLOCK"] = (FIRST + timedelta(minutes=number)).isoformat()
        shutil.rmtree(folder / "lake", ignore_errors=True)
        try:
            app(["sweep"], standalone_mode=False)
        except NightauditError as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            return 1
        (row,) = sweep_rows(Lake(str(folder / "lake"))).values()
        if row["planned"] != sum(row[status] for status in _STATUSES):
            sys.stderr.write(f"The statuses do not add up: {row}\n")
            return 1
        number += 1
        has = {
            "memory_mb": process.memory_info().rss / 1e6,
            "descriptors": process.num_fds(),
            "threads": process.num_threads(),
        }
        sys.stdout.write(f"\n{json.dumps(has)}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2])))
