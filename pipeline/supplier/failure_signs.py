"""Signs of a server's failure in JSON of any shape: gateways wrap, rename and nest what the document says.

A sign is a code of the server's failures under the name of a code, or an error under any name. Texts are not read: a
message may speak of an error where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

# The document has 500 alone; services tell a timeout or an overload by the codes of HTTP.
SERVER_CODES = range(500, 600)

_CODE_NAMES = frozenset(
    {
        "code", "error", "errors", "errorcode", "faultcode", "httpcode", "httpstatus", "httpstatuscode", "responsecode",
        "responsestatus", "resultcode", "returncode", "status", "statuscode",
    }
)  # fmt: skip
_SUCCESS_NAMES = frozenset({"issuccess", "ok", "success", "successful", "succeeded"})
_STATUS_NAMES = frozenset({"outcome", "result", "status"})
_FAILED_WORDS = ("error", "fail")

# `500`, `500.0`, `E500`, `HTTP 500`, `500 Internal Server Error`, and no number with other digits beside them.
_CODE_IN_TEXT = re.compile(r"\s*[A-Za-z]*[ _-]?(5\d\d)(?:\.0*)?(?![\d.,])")

# What is larger is an answer with offers; its signs stand beside its properties.
_MOST_NODES = 100_000


def server_code(value: object) -> int | None:
    """Return the code of a server's failure in any tree of JSON, if there is one under the name of a code."""
    return next((code for name, held in _named(value) if name in _CODE_NAMES and (code := _server_code(held))), None)


def speaks_of_failure(value: object) -> bool:
    """Return whether any tree of JSON names an error, or says that it is no success."""
    return any(_is_failure(name, held) for name, held in _named(value))


def _is_failure(name: str, held: object) -> bool:
    if held is False:
        return name in _SUCCESS_NAMES
    if isinstance(held, str) and name in _STATUS_NAMES:
        return held.strip().lower().startswith(_FAILED_WORDS)
    return bool(held) and ("error" in name or "exception" in name or name.startswith("fault"))


def _server_code(value: object) -> int | None:
    if isinstance(value, str):
        found = _CODE_IN_TEXT.match(value)
        return int(found[1]) if found else None
    if isinstance(value, list):
        return next((code for item in value if not isinstance(item, list) and (code := _server_code(item))), None)
    return int(value) if isinstance(value, int | float) and value in SERVER_CODES else None


def _named(value: object) -> Iterator[tuple[str, Any]]:
    """Yield each field in a tree, its name in small letters and without marks between them."""
    left, seen = [value], 0
    while left and seen < _MOST_NODES:
        seen += 1
        node = left.pop()
        if isinstance(node, dict):
            for name, held in node.items():
                yield "".join(filter(str.isalpha, name)).lower(), held
                if isinstance(held, dict | list):
                    left.append(held)
        elif isinstance(node, list):
            left.extend(item for item in node if isinstance(item, dict | list))
