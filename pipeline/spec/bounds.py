"""Limits on the size of a spec's file and of what it expands to, checked before a parser expands it.

A few hundred bytes of YAML can stand for a billion nodes, and a long dotted key of TOML costs the square of its parts.
"""

import re
from itertools import groupby
from pathlib import Path

import yaml

from pipeline.domain.texts import shortened
from pipeline.process.regular_file import open_regular

# A hundred thousand ids; more belong into a file of their own (`properties.file`).
MOST_BYTES = 1_000_000
MOST_NODES = 250_000
DEEPEST = 20
MOST_ERRORS_SHOWN = 20
# Parsers quote keys.
_LONGEST_MESSAGE = 300
# Parts of a dotted key; twenty would be one too many, and a sentence may have as many full stops.
_MOST_PARTS = 64

# The part between two dots of a key. A line break, a comma or a bracket ends it.
_KEY_PART = re.compile(r"[^\S\n]*[^\s=,\[\]{}#][^\n=,\[\]{}#]*")


# Python converts numbers of a few thousand digits to text and back, but reads longer ones of other bases.
_LONG_NUMBER = re.compile(r"\b0[xob][0-9A-Fa-f_]{1001}")


class Unreadable(ValueError):
    """A text is not of its format, or too large. `line` counts from 1 and is None if the parser does not say."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(shortened(message, _LONGEST_MESSAGE))
        self.line = line


def read_bounded(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return what a file holds. Raises OSError, and Unreadable if it is larger than `most_bytes`."""
    with open_regular(path) as file:
        # Not by its stated size: those below /proc state none.
        held = file.read(most_bytes + 1)
    if len(held) > most_bytes:
        raise Unreadable(f"it is larger than {most_bytes:,} bytes")
    return held


def refuse_costly_toml(text: str) -> None:
    """Raise Unreadable if a number is longer, or a key has more parts, than any spec's: their square is the cost."""
    for is_part, parts in groupby(text.split("."), key=lambda part: _KEY_PART.fullmatch(part) is not None):
        if is_part and sum(1 for _ in parts) > _MOST_PARTS:
            raise Unreadable("it is nested too deeply")
    if found := _LONG_NUMBER.search(text):
        raise Unreadable("a number has more than 1,000 digits", text.count("\n", 0, found.start()) + 1)


def refuse_expanding_yaml(text: str, loader: type[yaml.SafeLoader] | type[yaml.CSafeLoader]) -> None:
    """Raise Unreadable if a YAML text holds, once its aliases are followed, more nodes or levels than any spec.

    Raises yaml.YAMLError where it cannot be parsed.
    """
    # Of each collection that is open: its anchor, its nodes and its levels so far.
    opened: list[tuple[str | None, int, int]] = []
    sizes: dict[str, tuple[int, int]] = {}
    for event in yaml.parse(text, Loader=loader):
        line = event.start_mark.line + 1 if event.start_mark else None
        nodes, levels, anchor = 0, 0, None
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, 1, 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, nodes, levels = opened.pop()
        elif isinstance(event, yaml.ScalarEvent):
            anchor, nodes = event.anchor, 1
        elif isinstance(event, yaml.AliasEvent):
            if any(name == event.anchor for name, _, _ in opened):
                raise Unreadable("it is nested too deeply: an alias contains itself", line)
            nodes, levels = sizes.get(event.anchor or "", (1, 0))
        if anchor is not None:
            sizes[anchor] = nodes, levels
        if nodes and opened:
            name, before, deepest = opened[-1]
            opened[-1] = name, before + nodes, max(deepest, levels + 1)
            if before + nodes > MOST_NODES:
                raise Unreadable(f"it holds more than {MOST_NODES:,} values", line)
            if len(opened) + levels > DEEPEST:
                raise Unreadable("it is nested too deeply", line)
        elif len(opened) > DEEPEST:
            raise Unreadable("it is nested too deeply", line)
