"""A night of a few cells: spec, settings, a supplier that is not the bundled one, and a receiver of messages."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.publish import published_sweeps
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.settings import Settings, read_settings

SECRET = "never-to-be-seen-7f3a"

# Two cells a market and day; 4 searches.
_SPEC = """
[properties]
{properties}
[stays]
nights = [1]
[[stays.horizon]]
to_days = {days}
every_days = 1
[ask]
markets = ["GB"]
parties = ["2"]
currencies = ["EUR"]
operations = ["multi", "single"]
"""


def write_spec_in(folder: Path, *, ids: list[int] | None = None, days: int = 2) -> Path:
    """Write a spec of few properties and return its path."""
    path = folder / f"{days}-days-of-{len(ids or [])}.toml"
    path.write_text(_SPEC.format(properties=f"ids = {ids}" if ids else "sandbox = 2", days=days))
    return path


def settings_in(folder: Path, **others) -> Settings:
    """Settings of a small simulated night, with changes."""
    usual = {"lake": str(folder / "lake"), "workers": 1}
    if "spec" not in others:
        usual["spec"] = write_spec_in(folder)
    return read_settings(_env_file=None, **{**usual, **others})


def published(lake: Lake) -> list[str]:
    """The published sweeps, oldest first."""
    return [entry.sweep_id for entry in published_sweeps(lake)]


def rows(lake: Lake, query: str) -> list[tuple]:
    with query_published(lake.published_file, query) as found:
        return found.fetchall()


@contextmanager
def outside_supplier(
    settings: Callable[..., Settings], folder: Path, **faults
) -> Iterator[tuple[SandboxProcess, Settings]]:
    """A supplier that the settings do not take for the bundled one."""
    with SandboxProcess(properties=50, client_id="shop", client_secret=SECRET) as sandbox:
        ids = sandbox.control("properties")["property_ids"][:3]
        if faults.pop("poison", False):
            faults["poisoned_property_ids"] = ids[:1]
        sandbox.control("faults", faults)
        yield (
            sandbox,
            settings(
                base_url=sandbox.base_url,
                client_id="shop",
                client_secret=SECRET,
                spec=write_spec_in(folder, ids=ids, days=10),
                requests_per_second=500,
                attempts=1,
            ),
        )


@contextmanager
def receiving(
    status: int = 200, delay: float = 0.0, *, is_dripping: bool = False
) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A real receiver of POSTs: its address, and the messages it received.

    It answers after a delay; `is_dripping`: byte by byte, until it is released.
    """
    got: list[dict[str, str]] = []
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            is_over.wait(delay)
            self.send_response(status)
            self.end_headers()
            while is_dripping and not is_over.wait(0.05):
                self.wfile.write(b"x")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hidden-part", got
    finally:
        is_over.set()
        server.shutdown()
        server.server_close()
