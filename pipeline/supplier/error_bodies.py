"""The errors that an answer speaks of: the document has two shapes of them, and services have more."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pipeline.domain.codes import ERROR_CODES
from pipeline.supplier.bodies import UnreadableBody, beginning, inflate

# An error answer is a few lines; what is larger is not one.
_ERROR_BODY_BYTES = 64 * 1024

# Where an answer has properties, they fill its beginning; one of errors alone names these within it.
_BEGINNING_BYTES = 512
_MARKS = (b"error", b'"code"')
_ANSWERS = ("properties", "property")

_OK = 200

# The document has 500 alone; services tell a timeout or an overload by the codes of HTTP.
_SERVER_CODES = range(500, 600)


def error_codes(body: bytes, content_encoding: str = "") -> tuple[int, ...]:
    """Return the codes of an error answer, in either item shape; none where there are none to be read."""
    codes = (_code(item) for item in _items(_document(body, content_encoding, _ERROR_BODY_BYTES)))
    return tuple(dict.fromkeys(code for code in codes if code is not None))


def error_messages(body: bytes, content_encoding: str = "", *, limit_bytes: int = _ERROR_BODY_BYTES) -> tuple[str, ...]:
    """Return the texts of an answer's errors, in either item shape; none where there are none to be read."""
    items = [item for item in _items(_document(body, content_encoding, limit_bytes)) if isinstance(item, dict)]
    texts = (item.get(name) for item in items for name in ("message", "errorDescription"))
    # Half a surrogate pair is a text in JSON and in no file.
    return tuple(text.encode("utf-8", "replace").decode() for text in texts if isinstance(text, str) and text)


def server_failure(status: int, body: bytes, content_encoding: str) -> str:
    """Return what a whole 200 or 400 says of a failure of the server itself, in a few words; nothing if it does not.

    Such an answer names no property, and an error with the code of a server's failure; or, with 200, errors without
    any code. Cheap: of an answer with offers, it inflates the beginning.
    """
    if not any(mark in beginning(body, content_encoding, _BEGINNING_BYTES).lower() for mark in _MARKS):
        return ""
    document = _document(body, content_encoding, _ERROR_BODY_BYTES)
    if not isinstance(document, dict) or any(document.get(name) for name in _ANSWERS):
        return ""
    items = list(_items(document))
    codes = [code for code in map(_code, items) if code is not None]
    if failed := next((code for code in codes if code in _SERVER_CODES), None):
        return f"error {failed}"
    return "errors without a code" if status == _OK and items and not codes else ""


def _document(body: bytes, content_encoding: str, limit_bytes: int) -> object:
    try:
        return json.loads(inflate(body, content_encoding, limit_bytes=limit_bytes))
    except (UnreadableBody, ValueError, RecursionError):
        return None


def _items(document: object) -> Iterator[object]:
    """Yield what stands for an error each: in a list, alone, under another name, or as the answer itself."""
    if not isinstance(document, dict):
        return
    for name in ("errors", "error"):
        errors = document.get(name)
        if errors:
            yield from errors if isinstance(errors, list) else [errors]
            return
    if _code(document) is not None:
        yield document


def _code(item: object) -> int | None:
    """Return an error's code; some services write numbers as text, and some a number alone."""
    if isinstance(item, dict):
        return next((code for name in ("errorCode", "code") if (code := _code_of(item.get(name))) is not None), None)
    found = _code_of(item)
    return found if found in _SERVER_CODES or found in ERROR_CODES else None


def _code_of(value: object) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 12:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
