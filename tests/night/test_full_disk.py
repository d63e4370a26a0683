"""A disk that is really full: each step of a night says so with exit code 6, and continues once there is space."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_night import write_spec_in

ROOT = Path(__file__).parents[2]
# What is free at first, and how much more of it there is each time that a step ran out of it.
FREE_KB, MORE = 40, 6

pytestmark = pytest.mark.slow


def mount(disk: Path, options: str) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")


@pytest.fixture
def disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount(place, f"size={FREE_KB}k")
    yield place
    subprocess.run(["umount", place], check=True)


def command(folder: Path, disk: Path, name: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("NIGHTAUDIT_")}
    given = {"NIGHTAUDIT_LAKE": str(disk / "lake"), "NIGHTAUDIT_WORKERS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pipeline.cli", name],
        env=kept | given | {"NIGHTAUDIT_SPEC": str(write_spec_in(folder)), "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_each_step_reports_a_full_disk_and_continues_once_there_is_space(tmp_path, disk):
    for step in ("sweep", "audit", "publish", "report"):
        free_kb, codes = FREE_KB, []
        while not codes or codes[-1]:
            mount(disk, f"remount,size={shutil.disk_usage(disk).used // 1000 + free_kb}k")
            has_begun = any(disk.glob("lake/raw/*/sweep.json"))
            done = command(tmp_path, disk, "resume" if step == "sweep" and has_begun else step)
            codes.append(done.returncode)
            assert done.returncode in {0, 6}, done.stderr
            assert "Traceback" not in done.stderr
            assert "never retrieved" not in done.stderr
            if done.returncode:
                assert "No space left on device" in done.stderr
                assert "Free some space" in done.stderr or "Fix the cause (disk space" in done.stderr
                assert "nightaudit" in done.stderr.splitlines()[-1]
            free_kb *= MORE
        assert codes[:-1], f"{step} never ran out of space"
