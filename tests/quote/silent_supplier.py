"""A supplier that gives tokens, counts quotes, and answers each in one way: a status, a body, or never."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class SilentSupplier:
    """`status` None: never an answer, until it is closed."""

    def __init__(self, status: int | None, body: bytes = b"{}") -> None:
        self.quotes: list[dict[str, object]] = []
        self.came = threading.Event()
        self.closing = threading.Event()
        supplier = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                sent = self.rfile.read(int(self.headers["content-length"]))
                if self.path.endswith("/token"):
                    self.answer(200, b'{"access_token":"t","token_type":"Bearer","expires_in":600}')
                    return
                supplier.quotes.append(json.loads(sent))
                supplier.came.set()
                if status is None:
                    supplier.closing.wait(30)
                    self.close_connection = True
                    return
                self.answer(status, body)

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.base_url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> SilentSupplier:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
