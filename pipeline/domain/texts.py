"""Text of others, made harmless for the terminal, spreadsheet or Markdown that shows it."""

from __future__ import annotations

import re
from typing import Final

# What a terminal obeys (C0, DEL, C1), what turns round or hides what is written beside it, and halves of characters.
_CONTROLS: Final = (
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb"
)
_OBEYED: Final = re.compile(f"[{_CONTROLS}\\ud800-\\udfff]")

# What a spreadsheet would run. Blanks before the sign do not keep every spreadsheet from it, nor do the wide forms of
# the signs.
_FORMULA_TEXT: Final = "^(?:[\\t\\r\\n]|[\\s\ufeff]*[=+\\-@＝＋－＠])"
_FORMULA: Final = re.compile(_FORMULA_TEXT)

# What Markdown reads as marks.
_MARKS: Final = re.compile(r"[\\`*_{}\[\]<>|#]")

# What `in_a_cell` changes, for Python and for polars, which knows no halves of characters.
GUARDED: Final = f"{_FORMULA_TEXT}|[{_CONTROLS}]"


def printable(text: str) -> str:
    """Return text for a terminal: control characters are shown as `\\x1b`, `\\u202e`, and not obeyed."""
    return _OBEYED.sub(lambda found: repr(found[0])[1:-1], text)


def printable_json(document: str) -> str:
    """Return a JSON document for a terminal: the same values, with control characters written as `\\u009b`."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def in_a_cell(text: str) -> str:
    """Return text for a cell of CSV: `printable`, and marked as text where a spreadsheet would run it as a formula."""
    return f"'{printable(text)}" if _FORMULA.match(text) else printable(text)


def in_markdown(text: str) -> str:
    """Return text for Markdown, in a table too: none of its signs is read as a mark."""
    return _MARKS.sub(lambda found: f"\\{found[0]}", text)


def one_line(text: str | None) -> str:
    """Return a text that may stand in code over several lines as one; nothing where there is none."""
    return " ".join((text or "").split())


# A longer word is cut, such as an address.
_LONGEST_WORD = 40


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters: a longer one ends behind a word, and with `…`."""
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    whole = kept.rpartition(" ")[0].rstrip()
    return f"{whole if len(kept) - len(whole) <= _LONGEST_WORD else kept}…"
