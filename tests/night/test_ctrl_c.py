"""Ctrl-C, wherever it falls: one message, what to do next, and no traceback."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import psutil
import pytest
from tiny_night import write_spec_in

from pipeline.domain.errors import SweepStopped
from pipeline.process.event_loop import run_in_loop
from pipeline.process.signals import stoppable

ROOT = Path(__file__).parents[2]
# What Python, asyncio, multiprocessing and DuckDB print of things that were left to them.
LEAKS = re.compile(r"Traceback|never retrieved|was destroyed|Exception ignored|leaked|resource_tracker|BrokenPipe")
WAIT_SECONDS = 300


def started(folder: Path, *argv: str) -> subprocess.Popen[str]:
    """A process of Python in a group of its own, as a shell starts what it runs in the foreground."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTAUDIT_")}
    given = {
        "NIGHTAUDIT_LAKE": "lake",
        "NIGHTAUDIT_WORKERS": "2",
        "NIGHTAUDIT_SPEC": str(write_spec_in(folder, days=9)),
    }
    return subprocess.Popen(
        [sys.executable, *argv],
        cwd=folder,
        env=kept | given | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def await_file(folder: Path, pattern: str, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not any(folder.glob(pattern)):
        assert time.monotonic() < until, f"{pattern} did not come"
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def group_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    def is_of_it(each: psutil.Process) -> bool:
        try:
            return os.getpgid(each.pid) == process.pid
        except ProcessLookupError:
            return False

    return [each for each in psutil.process_iter() if is_of_it(each)]


BEGUN = {
    "asking": "lake/raw/*/sweep.json",
    "landing": "lake/raw/*/*.parquet",
    "loading": "lake/tables/*/_delta_log/*.json",
    "reporting": "lake/published/ledger/*.json",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begun", "often"), [("asking", 2), ("landing", 1), ("loading", 2), ("reporting", 1), ("reporting", 2)]
)
def test_a_night_that_is_stopped_says_so_and_nothing_else(tmp_path, begun, often):
    night = started(tmp_path, "-m", "pipeline.cli", "nightly")
    await_file(tmp_path, BEGUN[begun], night)
    members = group_of(night)
    for _ in range(often):
        # As a terminal does: the whole group hears it.
        os.killpg(night.pid, signal.SIGINT)
    out, err = night.communicate(timeout=WAIT_SECONDS)
    assert night.returncode == 130, out + err
    assert not LEAKS.search(err), err
    assert "Stopped" in err
    assert "nightaudit" in err.splitlines()[-1]
    _, left = psutil.wait_procs(members, WAIT_SECONDS)
    assert not left


@pytest.mark.slow
def test_a_service_manager_that_ends_the_whole_group_stops_the_night_as_requested(tmp_path):
    night = started(tmp_path, "-m", "pipeline.cli", "nightly")
    await_file(tmp_path, BEGUN["landing"], night)
    os.killpg(night.pid, signal.SIGTERM)
    out, err = night.communicate(timeout=WAIT_SECONDS)
    assert night.returncode == 143, out + err
    assert "Stopped" in err
    assert "memory" not in err


STOPPED_WHILE_IT_IMPORTS = """
import os, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "pipeline.cli.commands":
            os.kill(os.getpid(), NUMBER)

sys.meta_path.insert(0, Finder())
from pipeline.cli import main
main()
"""
STOPPED_AFTER_ALL_IS_DONE = """
import atexit, os, sys
from pipeline.cli import main

atexit.register(lambda: os.kill(os.getpid(), NUMBER))
sys.argv[1:] = ["--version"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("code", [STOPPED_WHILE_IT_IMPORTS, STOPPED_AFTER_ALL_IS_DONE], ids=["before", "after"])
def test_a_command_that_is_stopped_before_it_has_begun_or_after_it_is_done_has_the_exit_code(tmp_path, code, number):
    command = started(tmp_path, "-c", code.replace("NUMBER", str(int(number))))
    out, err = command.communicate(timeout=WAIT_SECONDS)
    assert command.returncode == 128 + number, out + err
    assert err == "Stopped as requested.\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_arrives_where_no_error_can_be_raised_is_not_lost(number, capsys):
    class Thing:
        pass

    def asked(_: object) -> None:
        os.kill(os.getpid(), number)

    things = [Thing()]
    kept = weakref.ref(things[0], asked)

    @stoppable("All is kept.", "nightaudit status")
    def work() -> None:
        things.clear()
        threading.Event().wait(WAIT_SECONDS)

    with pytest.raises(SweepStopped) as stopped:
        work()
    assert stopped.value.exit_code == 128 + number
    assert kept() is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("often", [1, 2])
@pytest.mark.filterwarnings("error")
def test_a_signal_that_arrives_while_the_event_loop_is_made_stops_the_work_without_a_traceback(
    often, monkeypatch, capsys
):
    made = asyncio.SelectorEventLoop.__init__

    def interrupted(loop: asyncio.SelectorEventLoop) -> None:
        for _ in range(often):
            signal.raise_signal(signal.SIGINT)
        made(loop)

    async def work() -> None:
        await asyncio.sleep(WAIT_SECONDS)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "__init__", interrupted)
    with pytest.raises(SweepStopped), stoppable("All is kept.", "nightaudit status"):
        run_in_loop(work)
    assert capsys.readouterr().err == ""
