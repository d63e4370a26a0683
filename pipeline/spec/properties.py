"""From a spec's source of properties to the ids themselves."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from pipeline.domain.errors import SpecError
from pipeline.domain.texts import quoted, shortened
from pipeline.spec.bounds import Unreadable, read_bounded
from pipeline.spec.model import Detail, Properties
from pipeline.spec.values import MAX_PROPERTY_ID

COLUMN = "property_id"
MOST_ERRORS_SHOWN = 10
# More than any supplier sells: a query that returns more has gone wrong, and would fill the memory.
MOST_PROPERTIES = 5_000_000
MOST_FILE_BYTES = 250_000_000

_DELIMITERS = ",;\t"
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,_]{0,30}")


def resolve_properties(
    properties: Properties,
    folder: Path,
    *,
    resolve_query: Callable[[str], Iterable[int]] | None = None,
    resolve_sandbox: Callable[[int], Iterable[int]] | None = None,
) -> tuple[int, ...]:
    """Return the property ids, ascending, each once.

    `folder` is the spec's own, from which a relative file is meant. `resolve_query` runs SQL over the last published
    night; `resolve_sandbox` returns the first N ids of the sandbox; None if there is no such thing.
    Raises SpecError if the source is missing, empty or holds what is not a property id.
    """
    if properties.ids is not None:
        return tuple(sorted(properties.ids))
    if properties.file is not None:
        found = _from_file(folder / properties.file, "properties.file")
        if not found:
            raise SpecError(f"{folder / properties.file} contains no property id.", hint="Write one id per line.")
    elif properties.query is not None:
        found = _from_query(properties.query, resolve_query)
    else:
        found = _from_sandbox(properties.sandbox or 0, resolve_sandbox)
    return tuple(sorted(set(found)))


def resolve_watched(detail: Detail, folder: Path) -> tuple[int, ...]:
    """Return the ids of a spec's watch list, ascending. Raises SpecError if its file holds what is not one."""
    if detail.watch_file is None:
        return tuple(sorted(detail.watch or ()))
    return tuple(sorted(_from_file(folder / detail.watch_file, "detail.watch_file")))


def _from_query(query: str, resolve: Callable[[str], Iterable[int]] | None) -> list[int]:
    if resolve is None:
        raise SpecError(
            "properties.query of the sweep spec reads the last published night, but this lake has none.",
            hint="Publish a first night with properties.ids or properties.file.",
        )
    found = list(islice(resolve(query), MOST_PROPERTIES + 1))
    if len(found) > MOST_PROPERTIES:
        raise SpecError(
            f"properties.query of the sweep spec returned more than {MOST_PROPERTIES:,} rows.",
            hint="Try it with `nightaudit query`; it should return each property once.",
        )
    if wrong := [value for value in found if not _is_property_id(value)]:
        raise SpecError(
            f"properties.query of the sweep spec returned {_as_sql(wrong[0])}, which is not a property id.",
            hint="Its first column must hold property ids, without NULL.",
        )
    if not found:
        raise SpecError("properties.query of the sweep spec returned nothing.", hint="Try it with `nightaudit query`.")
    return found


def _from_sandbox(wanted: int, resolve: Callable[[int], Iterable[int]] | None) -> list[int]:
    if resolve is None:
        raise SpecError(
            "properties.sandbox of the sweep spec takes the sandbox's properties, but a supplier's address is set.",
            hint="Give properties.ids, properties.file or properties.query, or unset NIGHTAUDIT_BASE_URL.",
        )
    found = list(resolve(wanted))
    if len(found) < wanted:
        raise SpecError(
            f"properties.sandbox of the sweep spec asks for {wanted} properties, but the sandbox has "
            f"only {len(found)}.",
            hint="Lower it, or raise NIGHTAUDIT_SANDBOX_PROPERTIES.",
        )
    return found


def _from_file(path: Path, key: str) -> list[int]:
    try:
        text = read_bounded(path, MOST_FILE_BYTES).decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise SpecError(
            f"{key} of the sweep spec, {path}, cannot be read: {error.strerror}.",
            hint="A relative path starts at the spec's folder.",
        ) from None
    except Unreadable as error:
        raise SpecError(f"{path} cannot be read: {error}.", hint="List each property once, one per line.") from None
    except UnicodeDecodeError:
        raise SpecError(f"{path} is not UTF-8 text.", hint="Save it as UTF-8.") from None
    rows = [(number, row) for number, line in enumerate(text.split("\n"), 1) if (row := line.strip())]
    return _checked(path, _id_texts(path, [(number, row) for number, row in rows if not row.startswith("#")]))


def _id_texts(path: Path, rows: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield row numbers and the texts that should be ids."""
    header = _header(rows[0][1]) if rows else None
    if header is None:
        yield from ((number, row.split("#")[0].strip()) for number, row in rows)
        return
    names, delimiter = header
    if COLUMN not in names:
        raise SpecError(
            f"{path}:{rows[0][0]}: the header names {len(names)} columns, but no {COLUMN}.",
            hint=f"Name the column of ids {COLUMN}, or write one id per line without a header.",
        )
    at = names.index(COLUMN)
    for number, row in rows[1:]:
        # Row by row, so that a stray quotation mark costs its own row only.
        cells = next(csv.reader([row], delimiter=delimiter))
        yield number, cells[at].strip() if at < len(cells) else ""


def _header(row: str) -> tuple[list[str], str] | None:
    """Return names and delimiter where a file's first row is the header of a CSV file."""
    delimiter = max(_DELIMITERS, key=row.count)
    names = [name.strip() for name in next(csv.reader([row], delimiter=delimiter))]
    return (names, delimiter) if len(names) > 1 or names == [COLUMN] else None


def _checked(path: Path, texts: Iterable[tuple[int, str]]) -> list[int]:
    row_of: dict[int, int] = {}
    problems = []
    for number, text in texts:
        # isdecimal alone lets digits of other scripts through.
        value = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
        if not _is_property_id(value):
            # A spec may name any file, such as one with a secret: only what looks like a number is repeated.
            named = quoted(text) if _NUMBER.fullmatch(text) else "this"
            problems.append(f"{path}:{number}: {named} is not a property id (1 to {MAX_PROPERTY_ID})")
        elif value in row_of:
            problems.append(f"{path}:{number}: {value} is given twice, first in row {row_of[value]}")
        else:
            row_of[value] = number
    if problems:
        more = len(problems) - MOST_ERRORS_SHOWN
        shown = problems[:MOST_ERRORS_SHOWN] + ([f"and {more} more"] if more > 0 else [])
        raise SpecError(
            "These property ids cannot be used:\n" + "\n".join(f"  {each}" for each in shown),
            hint=f"Write one id per line, or a CSV file with a column {COLUMN}.",
        )
    return list(row_of)


def _as_sql(value: object) -> str:
    """Return a value of a query as its author knows it: NULL, a quoted text, a plain number or date."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "true", False: "false"}[value]
    return quoted(value) if isinstance(value, str) else shortened(str(value), 80)


def _is_property_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_PROPERTY_ID
