"""The sandbox as its own process, started and stopped by its user and never outliving it."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, Self

import msgspec

from pipeline.sandbox.faults.faults import read_faults
from pipeline.sandbox.server.options import Options

_READY_S: Final = 30.0
_STOP_S: Final = 5.0


class SandboxStartError(RuntimeError):
    """The sandbox did not start; the message holds the last lines that it wrote."""


class SandboxProcess:
    """A sandbox in another process, on a free port of the loopback.

        with SandboxProcess(seed=1, night=0, properties=300) as sandbox:
            ... sandbox.base_url, sandbox.client_id, sandbox.client_secret, sandbox.pid

    It is stopped on exit, and ends on its own when this process is gone, even after kill -9. `chosen` are fields of
    `Options`, `faults` keys of `faults.Faults`. Raises FaultError for wrong faults, and SandboxStartError if there is
    no answer within half a minute.
    """

    def __init__(
        self,
        *,
        faults: Mapping[str, Any] | None = None,
        port: int = 0,
        **chosen: Any,  # noqa: ANN401 - any field of Options
    ) -> None:
        # A wrong key is reported at once.
        self._options = Options(faults=read_faults(dict(faults or {})), **chosen)
        self.client_id = self._options.client_id
        self.client_secret = self._options.client_secret
        self.base_url = ""
        self.pid = 0
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def start(self) -> Self:
        """Start the process and wait until it answers."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in stop()
        environment = dict(os.environ)
        # The child must find the package that this process runs, installed or not.
        root = str(Path(__file__).parents[3])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
            [sys.executable, "-m", "pipeline.sandbox.server.child", str(os.getpid()), str(self._port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            # Ctrl-C in a terminal is for the caller, who may still want answers while stopping.
            start_new_session=True,
        )
        self.pid = self._process.pid
        try:
            self.base_url = self._await_address()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the process, if it is running."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def control(self, name: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer of `/sandbox/<name>`; with a body it is posted. Raises urllib's HTTPError on a refusal.

        Names: health, served, planted, properties, rates, faults (get and post), night (post).
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base_url}/sandbox/{name}", data)  # noqa: S310 - our own address
        # Proxies of the environment are not for the loopback.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _await_address(self) -> str:
        """Send the options and return the base address that the child writes once it accepts connections."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise SandboxStartError("the sandbox has not been started")
        line: list[bytes] = []
        reader = threading.Thread(target=lambda out: line.append(out.readline()), args=(process.stdout,), daemon=True)
        reader.start()
        # Secrets go through the pipe, as others can read a process's arguments and environment. The pipe stays open;
        # its end tells the child that this process is gone. If the child ended at once, the message below says why.
        with suppress(BrokenPipeError):
            process.stdin.write(msgspec.json.encode(self._options) + b"\n")
            process.stdin.flush()
        reader.join(_READY_S)
        if not line or not line[0]:
            raise SandboxStartError(
                f"the sandbox did not answer within {_READY_S:.0f} s. It wrote:\n{self._last_lines()}"
            )
        return str(json.loads(line[0])["base_url"])

    def _last_lines(self) -> str:
        if self._log is None:
            return ""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            time.sleep(0.1)
        self._log.seek(0)
        return self._log.read()[-2000:].decode(errors="replace")
