"""What runs inside a `SandboxProcess`: reads options from stdin, writes its address to stdout, ends with its parent.

Two checks end the process when its parent is gone. The end of the pipe shows it at once, unless a process that the
parent forked keeps it open; so the parent's process id is checked as well. The kernel's parent-death signal is not
used, as it fires when the *thread* that started the child ends.
"""

import json
import os
import select
import socket
import sys
import threading
import time
from typing import Final

import msgspec

from pipeline.sandbox.server.network import serve
from pipeline.sandbox.server.options import LOOPBACK, Options

_LOOK_EVERY_S: Final = 0.5
_READY_WITHIN_S: Final = 30.0


def main() -> None:
    """Run the sandbox of the options on stdin."""
    parent, port = map(int, sys.argv[1:])
    options = msgspec.json.decode(sys.stdin.buffer.readline(), type=Options)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    serve(options, LOOPBACK, port, announce=_announce_when_ready)


def _announce_when_ready(base_url: str) -> None:
    threading.Thread(target=_announce, args=(base_url,), daemon=True).start()


def _announce(base_url: str) -> None:
    host, _, port = base_url.removeprefix("http://").rpartition(":")
    ends_at = time.monotonic() + _READY_WITHIN_S
    while time.monotonic() < ends_at:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.01)
        else:
            sys.stdout.write(json.dumps({"base_url": base_url}) + "\n")
            sys.stdout.flush()
            return


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        if sys.platform == "win32":
            time.sleep(_LOOK_EVERY_S)
            continue
        readable, _, _ = select.select([sys.stdin.buffer], [], [], _LOOK_EVERY_S)
        if readable and not os.read(sys.stdin.fileno(), 1024):
            break
    # No parent is left that could stop the server properly.
    os._exit(0)


if __name__ == "__main__":
    main()
