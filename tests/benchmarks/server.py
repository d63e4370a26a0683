"""A server that is not the bottleneck: nginx with canned answers, in separate processes that are not counted."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_CONFIG = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000; keepalive_timeout 600; sendfile on; tcp_nodelay on;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  default_type application/json; gzip_static {gzip};
  split_clients "$request_id" $canned {{ {choices} }}
  server {{
    listen 127.0.0.1:{port};
    location = /auth/oauth/token {{
      return 200 '{{"access_token":"t","token_type":"Bearer","expires_in":86400}}';
    }}
    location /v1/property/ {{ root {folder}; error_page 405 =200 /$canned; return 405; }}
    location / {{ root {folder}; error_page 405 =200 $uri; }}
  }}
}}
"""


def missing(*tools: str) -> str | None:
    """Return a message about tools that are not installed."""
    absent = [tool for tool in tools if shutil.which(tool) is None]
    return f"needs {' and '.join(absent)}: apt-get install {' '.join(absent)}" if absent else None


@contextmanager
def serving(bodies: Sequence[bytes], *, gzip: bool) -> Iterator[str]:
    """Serve one of the bodies, by chance, to each search; yield the base address."""
    import gzip as squeezing

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for number, body in enumerate(bodies):
            (folder / f"{number}.json").write_bytes(body)
            (folder / f"{number}.json.gz").write_bytes(squeezing.compress(body, 6))
        share = 100 // len(bodies)
        choices = " ".join(f"{share}% {number}.json;" for number in range(1, len(bodies))) + " * 0.json;"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        config = folder / "nginx.conf"
        config.write_text(
            _CONFIG.format(folder=folder, port=port, choices=choices, gzip="on" if gzip else "off"), encoding="utf-8"
        )
        server = subprocess.Popen(
            ["nginx", "-c", str(config), "-p", name, "-g", f"user {Path(name).owner()};"],
            stderr=subprocess.DEVNULL,
        )
        try:
            for _ in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()
