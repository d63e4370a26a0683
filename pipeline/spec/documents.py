"""TOML and YAML texts as plain data, together with the line of each part.

Neither tomllib nor PyYAML's constructors keep positions. YAML's nodes do. For TOML the text is cut into statements with
tomllib itself as the judge: a statement ends at the first line with which it parses. So there is no second grammar that
could disagree with the first, and the cost arises only where there is an error to place.
"""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from pipeline.domain.texts import shortened
from pipeline.spec.bounds import DEEPEST, Unreadable, refuse_costly_toml, refuse_expanding_yaml

Place = tuple[str | int, ...]

_CLOSERS = ("]", "}", '"""', "'''")
_INTEGER = re.compile(r"[-+]?[0-9]{1,40}")
_NULL = re.compile(r"~|null|Null|NULL|")
# Characters that may be parsed again to find a line; a text that is written to need more gets none.
_MOST_PARSED = 4_000_000


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed text; `line_of` returns the line (from 1) of a place, or None if the text does not have it."""

    data: dict[str, Any]
    line_of: Callable[[Place], int | None]

    def nearest_line(self, place: Place) -> int | None:
        """Return the line of a place, or of the nearest part of the text that holds it; None: there is none."""
        return next((line for end in range(len(place), 0, -1) if (line := self.line_of(place[:end]))), None)


def written(place: Place) -> str:
    """Return a place as `ask.markets[2]`, with items counted from 1."""
    parts = (f"[{part + 1}]" if isinstance(part, int) else f".{shortened(part, 80)}" for part in place)
    return "".join(parts).removeprefix(".")


def read_toml(text: str) -> Document:
    """Parse TOML. Raises Unreadable."""
    # As tomllib does itself: a carriage return alone at the end of a statement would not parse.
    text = text.replace("\r\n", "\n")
    refuse_costly_toml(text)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except ValueError as error:  # also what int() raises for thousands of digits
        raise Unreadable(str(error)) from None
    statements = cache(lambda: list(_statements(text)))
    return Document(data, lambda place: _toml_line(statements(), place))


@dataclass(frozen=True, slots=True)
class _Statement:
    """A header or assignment of a TOML text."""

    line: int
    lines: tuple[str, ...]
    content: dict[str, Any]

    @property
    def is_header(self) -> bool:
        return self.lines[0].lstrip().startswith("[")


def _statements(text: str) -> Iterator[_Statement]:
    lines = text.split("\n")
    begin = parsed = 0
    while begin < len(lines):
        end = begin + 1
        while (content := _parsed(lines[begin:end])) is None and end < len(lines):
            parsed += sum(len(line) + 1 for line in lines[begin:end])
            if parsed > _MOST_PARSED:
                return
            end += 1
            # What spans lines ends on a line with a closing mark: a long list is parsed twice, not once a line.
            while end < len(lines) and not any(mark in lines[end - 1] for mark in _CLOSERS):
                end += 1
        if content:
            yield _Statement(begin + 1, tuple(lines[begin:end]), content)
        begin = end


def _parsed(lines: list[str]) -> dict[str, Any] | None:
    try:
        return tomllib.loads("\n".join(lines))
    except ValueError:
        return None


def _toml_line(statements: list[_Statement], wanted: Place) -> int | None:
    table: Place = ()
    tables_in: dict[Place, int] = {}
    for statement in statements:
        if statement.is_header:
            table = _header_place(statement.content, tables_in)
            if table == wanted:
                return statement.line
            # The line of the list of tables is that of its first table.
            if table[:-1] == wanted and table[-1:] == (0,):
                return statement.line
        elif wanted[: len(table)] == table and _holds(statement.content, wanted[len(table) :]):
            return statement.line + _line_within(statement, wanted[len(table) :])
    return None


def _header_place(content: dict[str, Any], tables_in: dict[Place, int]) -> Place:
    place: Place = ()
    node: Any = content
    while node:
        ((key, node),) = node.items()
        place += (key,)
        if isinstance(node, list):
            # Only the last part of a header in double brackets is a list: it opens one table more.
            tables_in[place] = tables_in.get(place, 0) + 1
            return (*place, tables_in[place] - 1)
        if node and place in tables_in:
            place += (tables_in[place] - 1,)
    return place


def _holds(content: Any, place: Place) -> bool:  # noqa: ANN401 - whatever a document holds
    for part in place:
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            return False
    return bool(place)


def _line_within(statement: _Statement, place: Place) -> int:
    """Return how many lines below the start of the statement an item of a list is, as far as that is known."""
    keys = [part for part in place if isinstance(part, str)]
    index = next((part for part in place if isinstance(part, int)), None)
    if index is None or len(statement.lines) == 1:
        return 0
    path: Place = tuple(keys[: place.index(index)])

    def items_up_to(line: int) -> int:
        content = _parsed([*statement.lines[: line + 1], "]"])
        for key in path:
            content = content[key] if content else None  # type: ignore[index]
        return len(content) if content else 0

    return min(bisect_left(range(len(statement.lines) - 1), index + 1, key=items_up_to), len(statement.lines) - 1)


# Ten times as fast as the one in Python, where there is one.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Reads scalars as TOML would: YAML 1.1 makes a boolean of the market NO, and 8 of 010."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as PyYAML declares it


_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(rf"^(?:{_INTEGER.pattern})$"), list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(rf"^(?:{_NULL.pattern})$"), ["~", "n", "N", ""])


def read_yaml(text: str) -> Document:
    """Parse YAML: integers, texts, lists and mappings; dates stay texts. Raises Unreadable."""
    lines: dict[Place, int] = {}
    try:
        refuse_expanding_yaml(text, _Loader)
        root = yaml.compose(text, Loader=_Loader)
        data = _plain(root, (), lines) if root else {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(error.problem or error.context or "syntax error", mark.line + 1 if mark else None) from None
    except yaml.YAMLError as error:
        raise Unreadable(str(error)) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    if not isinstance(data, dict):
        raise Unreadable("it has no keys; it could start with `properties:`", 1)
    return Document(data, lines.get)


def _plain(node: yaml.Node, place: Place, lines: dict[Place, int]) -> Any:  # noqa: ANN401 - whatever a document holds
    lines.setdefault(place, node.start_mark.line + 1)
    if len(place) > DEEPEST:
        raise Unreadable("it is nested too deeply", node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*place, index), lines) for index, item in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        if node.tag == "tag:yaml.org,2002:int" and _INTEGER.fullmatch(node.value):
            return int(node.value)
        return None if node.tag == "tag:yaml.org,2002:null" else node.value
    found: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key.value, str):
            raise Unreadable("a key must be a plain word", line)
        if key.value in found:
            raise Unreadable(f"the key {key.value} is given twice", line)
        lines[*place, key.value] = line
        found[key.value] = _plain(value, (*place, key.value), lines)
    return found
