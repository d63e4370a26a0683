"""Shared by all tests: an empty lake, results made once per run, and the profiles of generated examples."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import hypothesis
import pytest
from filelock import FileLock

from pipeline.lake import Lake

sys.path.insert(0, str(Path(__file__).parent))

T = TypeVar("T")

# No test may fail because something else keeps the processors busy, and two runs of the same code draw the same.
hypothesis.settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
# Other examples each time, and ten times as many: for `make test-thorough`.
hypothesis.settings.register_profile(
    "thorough",
    hypothesis.settings.get_profile("suite"),
    derandomize=False,
    max_examples=10 * hypothesis.settings.default.max_examples,
    print_blob=True,
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


# A shell without job control lets what it runs in the background ignore SIGINT, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A test that makes whole nights takes minutes where the processors are busy.
_SECONDS_OF_SLOW_TESTS = 1200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests that make whole nights more time than the others have, unless they state their own."""
    for item in items:
        is_slow = item.get_closest_marker("slow") or item.get_closest_marker("cluster")
        if is_slow and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_SECONDS_OF_SLOW_TESTS))


@pytest.fixture(autouse=True)
def ctrl_c_is_for_the_tests() -> Iterator[None]:
    """Restore the handler of Ctrl-C, which commands that run in this process change."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if signal.getsignal(signal.SIGINT) is not before:
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


@pytest.fixture
def without_proxies(monkeypatch) -> None:
    """Forget the proxies that this machine's environment names."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def nightaudit(monkeypatch, capsys) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command in this process, which is faster, if the test is not about processes.

    `nightaudit(folder, "query", …, NIGHTAUDIT_LAKE="lake")`: in a folder, with these settings alone.
    """
    from pipeline.cli import main

    def run(folder: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(folder)
        for name in [name for name in os.environ if name.startswith("NIGHTAUDIT_")]:
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["nightaudit", *map(str, arguments)])
        capsys.readouterr()
        log, ours = logging.getLogger(), logging.getLogger("pipeline")
        handlers, level, level_of_ours = log.handlers.copy(), log.level, ours.level
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            # The command's own would write to what is captured here, also after this test.
            log.handlers[:] = handlers
            log.setLevel(level)
            ours.setLevel(level_of_ours)
        return subprocess.CompletedProcess(arguments, ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def once_a_run(tmp_path_factory) -> Callable[[str, Callable[[Path], T]], T]:
    """Make something once for all worker processes of a run: `once_a_run(name, make)` returns what `make(folder)` made.

    The first process makes it; the others wait and get a copy of what was returned. No test may change what is in the
    folder; one that needs to, copies it first.
    """
    root: Path = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        root = root.parent

    def once(name: str, make: Callable[[Path], T]) -> T:
        folder, result = root / f"once-{name}", root / f"once-{name}.pickle"
        with FileLock(f"{result}.lock"):
            if not result.exists():
                # What one that failed has left.
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                made = pickle.dumps(make(folder))
                result.write_bytes(made)
        return pickle.loads(result.read_bytes())  # noqa: S301 - written by this run

    return once


@pytest.fixture(scope="session")
def a_night(once_a_run) -> Lake:
    """A lake with one published night without requests. It must not be written to."""
    from nights import load_night, started_at

    from pipeline.publish import publish

    def make(folder: Path) -> Lake:
        made = Lake(str(folder / "lake"))
        publish(made, load_night(made, 0), started_at(0))
        return made

    return once_a_run("a-night-of-nothing", make)


@pytest.fixture
def lake_of_a_night(a_night, tmp_path) -> Lake:
    """A copy of that lake. Its views read the files of the original until it is refreshed or published again."""
    shutil.copytree(a_night.root, tmp_path / "lake")
    return Lake(str(tmp_path / "lake"))


@pytest.fixture
def redis_machine(tmp_path) -> Iterator[object]:
    """A Redis of its own, which can be restarted."""
    from redis_server import redis_server

    with redis_server(tmp_path) as server:
        yield server


@pytest.fixture
def redis(redis_machine) -> str:
    """The address of a Redis of its own."""
    return redis_machine.address
