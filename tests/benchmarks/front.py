"""nginx in front of a supplier notes when each search arrives: it does nothing else, and so is not late."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from free_port import free_port

_CONFIG = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log crit;
events {{ worker_connections 1024; }}
http {{
  log_format arrivals '$msec $request_time $uri';
  access_log {folder}/arrivals arrivals;
  keepalive_requests 1000000; keepalive_timeout 600; client_max_body_size 0; proxy_read_timeout 600;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream supplier {{ server {supplier}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://supplier; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


class Front:
    """A running server at an address of its own."""

    def __init__(self, port: int, log: Path) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self._log = log

    def arrivals(self, since: float) -> list[float]:
        """Return when searches arrived after a time, in order; times in Unix seconds, to the millisecond."""
        lines = (line.split() for line in self._log.read_text().splitlines())
        times = (float(ended) - float(took) for ended, took, path in lines if path.startswith("/v1/property/"))
        return sorted(at for at in times if at >= since)


@contextmanager
def in_front_of(supplier: str, folder: Path) -> Iterator[Front]:
    """Pass everything on to a supplier (`host:port`), and note it in a folder."""
    folder.mkdir()
    folder.chmod(0o755)
    port, config = free_port(), folder / "nginx.conf"
    config.write_text(_CONFIG.format(folder=folder, port=port, supplier=supplier), encoding="utf-8")
    owner = f"user {folder.owner()};"
    server = subprocess.Popen(["nginx", "-c", config, "-p", folder, "-g", owner], stderr=subprocess.DEVNULL)
    try:
        while not (folder / "nginx.pid").exists():
            if server.poll() is not None:
                raise RuntimeError((folder / "error.log").read_text())
            time.sleep(0.05)
        yield Front(port, folder / "arrivals")
    finally:
        server.terminate()
        server.wait()
