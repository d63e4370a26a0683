"""Counts the field names in a JSON text, cheaply and without decoding it."""

from __future__ import annotations

import re

import msgspec
import numpy as np

_END = int.from_bytes(b'":', "little")
# A quote within a text is preceded by a backslash.
_NAME = re.compile(rb'(?<!\\)"\s*:\s*(null)?')


def names_in(body: bytes) -> int:
    """Return how many names are in a body without spaces before colons.

    It compares pairs of bytes, at even and at odd places, as a search takes three times as long.
    """
    return sum(
        int(np.count_nonzero(np.frombuffer(body, "<u2", (len(body) - first) // 2, first) == _END)) for first in (0, 1)
    )


def names_and_nulls_in(text: bytes) -> tuple[int, int]:
    """Return how many names are in a text, with any spacing, and how many of them are null."""
    found = _NAME.findall(text)
    return len(found), found.count(b"null")


def repeats_a_name(body: bytes, document: object) -> bool:
    """Whether an object in a body has, or may have, a name twice. `document` is the decoded body."""
    try:
        kept = msgspec.json.encode(document)
    except (msgspec.MsgspecError, OverflowError, UnicodeEncodeError, ValueError):
        return True
    return names_in(body) != names_in(kept) and names_and_nulls_in(body)[0] != names_and_nulls_in(kept)[0]
