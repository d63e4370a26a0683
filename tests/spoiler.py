"""A faulty supplier: a real HTTP proxy between the pipeline and the sandbox that spoils answers."""

from __future__ import annotations

import gzip
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Market asked for, the request, and the answer of the sandbox: what is answered instead.
Spoil = Callable[[str, bytes, bytes], bytes]
# Market asked for and the request: the status that is answered instead, if any.
Refuse = Callable[[str, bytes], int | None]


def as_it_is(_market: str, _request: bytes, answer: bytes) -> bytes:
    return answer


class Spoiler:
    """Forwards all requests to an address; `spoil` may change the answers to searches, and `refuse` may refuse them.

    `answers` are those as they were, `asked` counts them, and `authorized_by` is what requests proved themselves with.

    with Spoiler(sandbox.base_url) as supplier: ... supplier.base_url
    """

    def __init__(self, behind: str) -> None:
        self.spoil: Spoil = as_it_is
        self.refuse: Refuse = lambda _market, _request: None
        self.asked = 0
        self.answers: dict[bytes, bytes] = {}
        self.authorized_by: set[str] = set()
        spoiler = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                spoiler.authorized_by.add(self.headers.get("Authorization", "").partition(" ")[2])
                kept = {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_HOP}
                request = urllib.request.Request(behind + self.path, body, kept)  # noqa: S310 - the sandbox
                try:
                    with _OPENER.open(request, timeout=30) as answer:
                        status, kind, text = answer.status, answer.headers["Content-Type"], answer.read()
                        if answer.headers.get("Content-Encoding") == "gzip":
                            text = gzip.decompress(text)
                except urllib.error.HTTPError as error:
                    status, kind, text = error.code, error.headers["Content-Type"], error.read()
                if status == 200 and b'"market"' in body:
                    spoiler.asked += 1
                    text = spoiler.answer(body, text)
                    status = spoiler.refuse(json.loads(body)["market"], body) or status
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, request: bytes, text: bytes) -> bytes:
        self.answers[request] = text
        return self.spoil(json.loads(request)["market"], request, text)

    def __enter__(self) -> Spoiler:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


_OF_ONE_HOP = {"host", "connection", "content-length", "accept-encoding"}
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
