"""Signs of a server's failure in JSON of any shape, as gateways wrap, rename and nest the document's errors.

A sign is a failure code under the name of a code, an error under any name, or a field that says that something is
missing. Texts next to offers are not read, as a message may mention an error where there is none. If nothing is on
sale, any message in an undocumented field is enough: two words in a row of three letters or more. Ids, traces,
versions, instants and numbers have none.
"""

import re
from collections.abc import Iterator
from typing import Any

# The document has only 500; services report timeouts and overload with codes of HTTP.
SERVER_CODES = range(500, 600)

_CODE_NAMES = frozenset(
    {
        "code", "error", "errors", "errorcode", "faultcode", "httpcode", "httpstatus", "httpstatuscode", "responsecode",
        "responsestatus", "resultcode", "returncode", "status", "statuscode",
    }
)  # fmt: skip
_SUCCESS_NAMES = frozenset({"issuccess", "ok", "success", "successful", "succeeded"})
_STATUS_NAMES = frozenset({"outcome", "result", "status"})
_PART_NAMES = frozenset({"incomplete", "partial", "partialresult", "timedout", "timeout", "truncated"})
_FAILED_WORDS = re.compile(
    r"denied|error|exceed|expired|fail|forbidden|rate.?limit|throttl|timed?.?out|unauth|unavailable"
)
# How gateways say that there was no error.
_NO_ERROR = re.compile(r"\s*(0+|false|no|none|null|ok|success(ful)?)?\s*", re.IGNORECASE)
_TWO_WORDS = re.compile(r"[^\W\d_]{3,}[,.:;]?\s+[^\W\d_]{3,}")
# Failure codes of HTTP. The document's own codes begin at 1000, except for its 500.
_FAILED_CODES = range(400, 600)

# `500`, `500.0`, `E500`, `HTTP 500`, `500 Internal Server Error`, but not 500 within a longer number.
_CODE_IN_TEXT = re.compile(r"\s*[A-Za-z]*[ _-]?(5\d\d)(?:\.0*)?(?![\d.,])")

# Anything larger is an answer with offers, with its signs next to the properties.
_MOST_NODES = 100_000
_MOST_CHARACTERS = 10_000


def server_code(value: object) -> int | None:
    """Return the code of a server's failure in any tree of JSON, if there is one under the name of a code."""
    return next((code for name, held in _named(value) if name in _CODE_NAMES and (code := _server_code(held))), None)


def speaks_of_failure(value: object) -> bool:
    """Whether a tree of JSON names an error, or says that it is not a success."""
    return any(_is_failure(name, held) for name, held in _named(value))


def has_message(value: object) -> bool:
    """Whether a text in a tree of JSON is a message: some words, whatever they say."""
    texts = (text for _, held in _named(value) for text in (held if isinstance(held, list) else (held,)))
    return any(isinstance(text, str) and _TWO_WORDS.search(text[:_MOST_CHARACTERS]) for text in texts)


def _is_failure(name: str, held: object) -> bool:
    if isinstance(held, bool):
        return name in (_PART_NAMES if held else _SUCCESS_NAMES) or (held and _names_error(name))
    if isinstance(held, str) and name in _CODE_NAMES | _STATUS_NAMES and _FAILED_WORDS.search(held.lower()):
        return True
    if name in _CODE_NAMES and _is_failed_code(held):
        return True
    if isinstance(held, str) and _NO_ERROR.fullmatch(held):
        return False
    return bool(held) and _names_error(name)


def _names_error(name: str) -> bool:
    return "error" in name or "exception" in name or name.startswith("fault")


def _is_failed_code(held: object) -> bool:
    if isinstance(held, str):
        return held.strip().isdecimal() and len(held) < 12 and int(held) in _FAILED_CODES
    return isinstance(held, int | float) and held in _FAILED_CODES


def _server_code(value: object) -> int | None:
    if isinstance(value, str):
        found = _CODE_IN_TEXT.match(value)
        return int(found[1]) if found else None
    if isinstance(value, list):
        return next((code for item in value if not isinstance(item, list) and (code := _server_code(item))), None)
    return int(value) if isinstance(value, int | float) and value in SERVER_CODES else None


def _named(value: object) -> Iterator[tuple[str, Any]]:
    """Yield each field in a tree, with its name in lower case and letters only."""
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
