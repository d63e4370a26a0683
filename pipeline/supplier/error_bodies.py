"""Errors in an answer: in the two shapes of the document, and in more that services use."""

import json
import re
from collections.abc import Iterator

from pipeline.domain.codes import ERROR_CODES
from pipeline.supplier.bodies import UnreadableBody, inflate
from pipeline.supplier.failure_signs import SERVER_CODES, server_code

# An error answer has a few lines, sometimes with a stack trace; anything larger is not one.
ERROR_BODY_BYTES = 1024 * 1024
# In other answers, secrets are hidden when they arrive; those with offers are not searched then, which would take long.
_CREDENTIAL = re.compile(
    r"\b((?:authorization|bearer|basic|password|secret|token)\b[\s:='\"]{1,4})(?=[^\s'\",]*[\d+/=])[^\s'\",]{8,}",
    re.IGNORECASE,
)


def error_codes(body: bytes, content_encoding: str = "") -> tuple[int, ...]:
    """Return the codes of an error answer, in either item shape, as far as they can be read."""
    codes = (_code(item) for item in _items(_document(body, content_encoding, ERROR_BODY_BYTES)))
    return tuple(dict.fromkeys(code for code in codes if code is not None))


def error_messages(body: bytes, content_encoding: str = "", *, limit_bytes: int = ERROR_BODY_BYTES) -> tuple[str, ...]:
    """Return the texts of an answer's errors, in either item shape, as far as they can be read."""
    items = [item for item in _items(_document(body, content_encoding, limit_bytes)) if isinstance(item, dict)]
    texts = (item.get(name) for item in items for name in ("message", "errorDescription"))
    # JSON may hold half a surrogate pair, which no file can store.
    known = (text.encode("utf-8", "replace").decode() for text in texts if isinstance(text, str) and text)
    return tuple(_CREDENTIAL.sub(r"\1(hidden)", text) for text in known)


def server_failure(body: bytes, content_encoding: str) -> int | None:
    """Return the code of a server's failure anywhere in a 400, if there is one."""
    return server_code(_document(body, content_encoding, ERROR_BODY_BYTES))


def codes_of(errors: object) -> list[int]:
    """Return the codes in the field `errors` of an answer, in either item shape."""
    items = errors if isinstance(errors, list) else [errors]
    return [code for item in items if isinstance(item, dict) and (code := _code(item)) is not None]


def _document(body: bytes, content_encoding: str, limit_bytes: int) -> object:
    try:
        return json.loads(inflate(body, content_encoding, limit_bytes=limit_bytes))
    except (UnreadableBody, ValueError, RecursionError):
        return None


def _items(document: object) -> Iterator[object]:
    """Yield the errors: in a list, alone, under another name, or the answer itself."""
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
    """Return an error's code. Some services write numbers as text, and some send only a number."""
    if isinstance(item, dict):
        return next((code for name in ("errorCode", "code") if (code := _code_of(item.get(name))) is not None), None)
    found = _code_of(item)
    return found if found in SERVER_CODES or found in ERROR_CODES else None


def _code_of(value: object) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 12:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
