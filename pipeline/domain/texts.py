"""Untrusted text, made harmless where it goes: the terminal, a spreadsheet, a chat, Markdown or SQL."""

import json
import re
from collections.abc import Mapping
from typing import Final

# Control characters (C0, DEL, C1), those that reverse or hide the text around them, tags, which only programs read, and
# lone surrogates.
_CONTROLS: Final = (
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb"
    "\U000e0000-\U000e007f"
)
_OBEYED: Final = re.compile(f"[{_CONTROLS}\\ud800-\\udfff]")

# What a spreadsheet would run as a formula; some do so even after blanks, and with the wide forms of the signs.
_FORMULA_TEXT: Final = '[\\s\ufeff"]*[=+\\-@＝＋－＠]'
_FORMULA: Final = re.compile(_FORMULA_TEXT)
# Where one may begin another cell within a text.
_SEPARATORS: Final = re.compile("([;\\t\\r\\n])")

# What Markdown reads as marks.
_MARKS: Final = re.compile(r"[\\`*_{}\[\]<>|#~]")

# A spreadsheet may drop them at the start of a cell, or begin the next one there.
_DROPPED: Final = ("\t", "\r", "\n")

# What chats read as a mention or a link, and a similar sign that they do not.
_CALLS: Final = str.maketrans("<>[]@`", "‹›［］＠'")

# What makes a web address of a text, and similar signs that do not: chats take `a.example` for one as well.
_SCHEME, _NO_SCHEME = re.compile("://"), "：//"
_WWW: Final = re.compile(r"(?<=\bwww)\.", re.IGNORECASE)
_DOMAIN: Final = re.compile(r"(?<=\w)\.(?=[^\W\d_])")
_NO_DOT: Final = "․"

# What `in_a_cell` changes, as a pattern for polars, which has no lone surrogates.
GUARDED: Final = f"^[\\t\\r\\n]|(?:^|{_SEPARATORS.pattern}){_FORMULA_TEXT}|[{_CONTROLS}]"


def printable(text: str) -> str:
    """Return text for a terminal: control characters become `\\x1b`, `\\u202e` and so on."""
    return _OBEYED.sub(lambda found: repr(found[0])[1:-1], text)


def printable_json(document: str) -> str:
    """Return a JSON document for a terminal: the same values, with control characters escaped as `\\u009b`."""
    return _OBEYED.sub(lambda found: json.dumps(found[0])[1:-1], document)


def in_a_cell(text: str) -> str:
    """Return text for a cell of CSV: `printable`, and marked as text where a spreadsheet would run it as a formula.

    Some begin another cell at a semicolon, tab or line break, within quotation marks too.
    """
    parts = (f"'{part}" if _FORMULA.match(part) else part for part in _SEPARATORS.split(text))
    return printable(("'" if text.startswith(_DROPPED) else "") + "".join(parts))


def in_markdown(text: str) -> str:
    """Return text for Markdown: `printable`, on one line, with all its marks escaped and no address as a link."""
    plain = _WWW.sub(_NO_DOT, _SCHEME.sub(_NO_SCHEME, printable(one_line(text))))
    return _MARKS.sub(lambda found: f"\\{found[0]}", plain)


def in_a_chat(text: str) -> str:
    """Return `printable` text for a message: it mentions no one, and no address in it becomes a link.

    Slack, Teams and Mattermost differ in their escapes, and mail has none.
    """
    return _DOMAIN.sub(_NO_DOT, _SCHEME.sub(_NO_SCHEME, printable(text).translate(_CALLS)))


def literal(text: str) -> str:
    """Return text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def validation_text(message: str) -> str:
    """Return a message of a validation by pydantic in the words of our own messages."""
    return (
        message.removeprefix("Value error, ")
        .replace("Input should", "must")
        .replace("a valid integer", "a whole number")
        .replace("a valid number", "a number")
        .replace("Field required", "is missing")
        .replace("greater than or equal to", "at least")
        .replace("less than or equal to", "at most")
        .split(", unable to parse")[0]
    )


def is_an_echo(error: Mapping[str, object]) -> bool:
    """Whether pydantic calls a list too short only because its items, reported already, were not counted."""
    return error["type"] == "too_short" and bool(error["input"])


def storable(text: str) -> str:
    """Return a text that a file can hold: JSON texts may have half a surrogate pair, which is escaped as in JSON."""
    return text.encode("utf-8", "backslashreplace").decode()


def one_line(text: str | None) -> str:
    """Return a text of several lines as one line; empty for None."""
    return " ".join((text or "").split())


# Of what a message quotes.
_QUOTED = 80


def quoted(value: object) -> str:
    """Return a value as Python writes it, cut to what a message can hold."""
    return shortened(repr(value[: 2 * _QUOTED] if isinstance(value, str) else value), _QUOTED)


# A longer word, such as an address, is cut.
_LONGEST_WORD = 40


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters; a longer one is cut after a word and ends with `…`."""
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    whole = kept.rpartition(" ")[0].rstrip()
    return f"{whole if len(kept) - len(whole) <= _LONGEST_WORD else kept}…"
