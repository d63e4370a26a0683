"""A process that has imported all that the commands need, and forks one for each command that it is to run.

A line of JSON in is a `Command`; a line of JSON out is one `Ended` for each process that it was run in. Whatever
befalls a command happens in its own process: a kill, a limit, a full disk (see `shim.c`).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType

MODES = ("count", "kill before", "kill after", "full", "read-only", "kill before name", "kill after name")
# Far more than any command needs; one that takes longer hangs.
_PATIENCE_S = 240.0


@dataclass(frozen=True)
class Command:
    """A command line of ours, the settings that it is given, and what befalls it.

    `mode`, `at` and `name` are those of the shim; `kill_at_s` kills it after that many seconds; `beside` are command
    lines that begin at the same time.
    """

    argv: list[str]
    env: dict[str, str]
    folder: str
    out: str
    mode: str = "count"
    at: int = 0
    name: str = ""
    kill_at_s: float | None = None
    address_space_mb: int | None = None
    descriptors: int | None = None
    beside: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative: the signal), and the resources it used.

    `kinds` has a letter for each event, in their order; `bytes` were written below the folder; `names` are those of
    the files that were renamed or linked into their places. Killed, it has none of them.
    """

    code: int
    seconds: float
    peak_mb: float
    said: str
    kinds: str = ""
    bytes: int = 0
    names: tuple[str, ...] = ()


@dataclass
class _Borrowed:
    """Stands in for the sandbox that a command would start for itself: the one whose requests are counted."""

    base_url: str
    client_id: str
    client_secret: str
    given: dict[str, object] = field(default_factory=dict)

    def __enter__(self) -> _Borrowed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


def _import_all() -> None:
    os.environ |= {"DO_NOT_TRACK": "1", "GX_ANALYTICS_ENABLED": "false"}
    import altair  # noqa: F401 - imported to be warm
    import deltalake  # noqa: F401 - imported to be warm
    import great_expectations  # noqa: F401 - imported to be warm
    import polars  # noqa: F401 - imported to be warm
    import vl_convert  # noqa: F401 - imported to be warm

    import pipeline.cli.audit
    import pipeline.cli.commands
    import pipeline.cli.lake
    import pipeline.cli.load
    import pipeline.cli.nightly
    import pipeline.cli.publish
    import pipeline.cli.rebuild
    import pipeline.cli.report
    import pipeline.cli.sweep
    import pipeline.cli.verify  # noqa: F401 - imported to be warm
    from pipeline.audit import declared, judge  # noqa: F401 - imported to be warm
    from pipeline.sweep import normalisers

    # In the command's own process, so that it can be killed between two files of a segment.
    normalisers.ProcessPoolExecutor = lambda workers, *_, **__: ThreadPoolExecutor(workers)
    normalisers.forkserver.ensure_running = lambda: None
    normalisers.run_tracker = lambda: None


def _in_child(command: Command, argv: Sequence[str], number: int) -> None:
    out = Path(f"{command.out}.{number}")
    descriptor = os.open(out, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.setpgid(0, 0)
    os.environ |= command.env
    time.tzset()
    shim = ctypes.CDLL(None)
    if "SHARED_SANDBOX" in command.env:
        from pipeline.sandbox.server import launch

        lent = json.loads(command.env["SHARED_SANDBOX"])
        launch.SandboxProcess = lambda **given: _Borrowed(**lent, given=given)  # type: ignore[misc]
    if command.address_space_mb is not None:
        most = command.address_space_mb * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if command.descriptors is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (command.descriptors, command.descriptors))
    code = 1
    sys.argv = ["nightaudit", *argv]
    # Without a C compiler there is none.
    has_shim = hasattr(shim, "faults_arm")
    if has_shim:
        shim.faults_arm(
            command.folder.encode(), 1 + MODES.index(command.mode), ctypes.c_long(command.at), command.name.encode()
        )
    try:
        from pipeline.cli import main

        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    if has_shim:
        shim.faults_kinds.restype = shim.faults_names.restype = ctypes.c_char_p
        shim.faults_bytes.restype = ctypes.c_long
        counted = {
            "kinds": shim.faults_kinds().decode(),
            "bytes": shim.faults_bytes(),
            "names": shim.faults_names().decode().splitlines(),
        }
        Path(f"{out}.counted").write_text(json.dumps(counted), encoding="utf-8")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(command: Command) -> list[Ended]:
    began = time.monotonic()
    children = {}
    for number, argv in enumerate([command.argv, *command.beside]):
        Path(f"{command.out}.{number}.counted").unlink(missing_ok=True)
        child = os.fork()
        if not child:
            _in_child(command, argv, number)
        children[child] = number
    ended: dict[int, Ended] = {}
    while children:
        time.sleep(0.002)
        for child, number in list(children.items()):
            passed = time.monotonic() - began
            found, status, used = os.wait4(child, os.WNOHANG)
            if not found:
                if passed > (_PATIENCE_S if command.kill_at_s is None else command.kill_at_s):
                    os.kill(child, signal.SIGKILL)
                continue
            del children[child]
            _end_rest(child)
            said = Path(f"{command.out}.{number}").read_text(encoding="utf-8", errors="replace")
            if passed > _PATIENCE_S:
                said += "\nIt hung."
            counted = Path(f"{command.out}.{number}.counted")
            more = json.loads(counted.read_text(encoding="utf-8")) if counted.exists() else {}
            code = os.waitstatus_to_exitcode(status)
            ended[number] = Ended(code, passed, used.ru_maxrss / 1000, said, **more)
    return [ended[number] for number in sorted(ended)]


def _end_rest(child: int) -> None:
    """End the processes that a killed command has left behind, as the end of a machine or a container would."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


if __name__ == "__main__":
    _import_all()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        sys.stdout.write(json.dumps([asdict(one) for one in _run(Command(**json.loads(line)))]) + "\n")
        sys.stdout.flush()
